// The keyring: secrets that must come back in clear are stored sealed with AES-256-GCM under a key of the
// operator's. Its file has one key per line, 32 bytes in base64; the first seals, all of them open. All
// servers on one database share it.

import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Sealed under a key that this keyring does not have. */
export class UnknownSealingKey extends Error {}

const cipher = 'aes-256-gcm';
const sizes = { id: 4, nonce: 12, tag: 16 };

export class Keyring {
  readonly #keys: ReadonlyMap<string, Buffer>;
  readonly #first: Buffer;

  constructor(keys: readonly Buffer[]) {
    const [first] = keys;
    if (first === undefined) throw new Error('a keyring without keys');
    this.#first = first;
    this.#keys = new Map(keys.map((key) => [idOf(key).toString('hex'), key]));
  }

  /** The id of the key that seals; it tells nothing of the key. */
  get id(): Buffer {
    return idOf(this.#first);
  }

  has(id: Buffer): boolean {
    return this.#keys.has(id.toString('hex'));
  }

  /** `purpose` must be the same when it is opened: what is sealed for one thing is of no use for another. */
  seal(purpose: string, secret: Buffer): Buffer {
    const nonce = randomBytes(sizes.nonce);
    const sealing = createCipheriv(cipher, this.#first, nonce).setAAD(Buffer.from(purpose));
    const text = Buffer.concat([sealing.update(secret), sealing.final()]);
    return Buffer.concat([this.id, nonce, text, sealing.getAuthTag()]);
  }

  open(purpose: string, sealed: Buffer): Buffer {
    const id = sealed.subarray(0, sizes.id);
    const key = this.#keys.get(id.toString('hex'));
    if (key === undefined) throw new UnknownSealingKey('sealed under a key that is not here');
    const nonce = sealed.subarray(sizes.id, sizes.id + sizes.nonce);
    const opening = createDecipheriv(cipher, key, nonce, { authTagLength: sizes.tag })
      .setAAD(Buffer.from(purpose))
      .setAuthTag(sealed.subarray(-sizes.tag));
    const text = sealed.subarray(sizes.id + sizes.nonce, -sizes.tag);
    return Buffer.concat([opening.update(text), opening.final()]);
  }
}

/** The keyring in this file; one with a new key where there is none yet. */
export async function openKeyring(file: string): Promise<Keyring> {
  const kept = await read(file);
  if (kept !== undefined) return new Keyring(keysIn(kept, file));
  await mkdir(dirname(file), { recursive: true });
  const draft = `${file}.${process.pid}.draft`;
  await writeFile(draft, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flush: true });
  try {
    // Of two servers that start at once the first makes it, whole.
    await link(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
  return new Keyring(keysIn(await readFile(file, 'utf8'), file));
}

async function read(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function keysIn(text: string, file: string): Buffer[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const keys = lines.map((line) => Buffer.from(line.trim(), 'base64'));
  if (keys.length === 0 || keys.some((key) => key.length !== 32)) {
    throw new Error(`The keyring ${file} must have 32 bytes in base64 on each line.`);
  }
  return keys;
}

function idOf(key: Buffer): Buffer {
  const digest = hash('sha256', Buffer.concat([Buffer.from('cubicle keyring '), key]), 'buffer');
  return digest.subarray(0, sizes.id);
}
