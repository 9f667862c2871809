// The keyring: the keys that secrets are encrypted with at rest. A file that the operator holds, apart from
// the database, so that a copy of the database alone tells nothing.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { placeKept, replaceKept, sweepDrafts } from './kept-file.ts';

/** A sealed value: format, key id, nonce, tag, then as many bytes as the plain text. */
const format = 1;
const idBytes = 4;
const headBytes = 1 + idBytes;
const nonceBytes = 12;
const tagBytes = 16;
const leastBytes = headBytes + nonceBytes + tagBytes;
const algorithm = 'aes-256-gcm';

/** The keyring cannot do what is asked of it; the sentence names no value. */
export class KeyringError extends Error {}

interface Key {
  /** Eight hexadecimal digits, written into what it seals. */
  readonly id: string;
  readonly key: Buffer;
  readonly made_at: string;
}

export class Keyring {
  readonly #path: string;
  /** Newest first: the first one seals, all of them open. */
  #keys: readonly Key[] = [];
  /** What the file was like when it was read. */
  #seen = '';

  private constructor(path: string) {
    this.#path = path;
    this.#read();
  }

  /** Makes the file with a first key where there is none. */
  static async open(path: string): Promise<Keyring> {
    await sweepDrafts(path);
    if (!existsSync(path)) await placeKept(path, textOf([newKey()]));
    return new Keyring(path);
  }

  /** `about` says what the value is and whose; opening it as anything else fails. */
  seal(plain: Buffer, about: string): Buffer {
    // Another process may have added a key, and a value must never hang on a key that no file has.
    this.#refresh();
    const { id, key } = this.#keys[0] as Key;
    const head = Buffer.concat([Buffer.of(format), Buffer.from(id, 'hex')]);
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv(algorithm, key, nonce).setAAD(bound(head, about));
    const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
    return Buffer.concat([head, nonce, cipher.getAuthTag(), sealed]);
  }

  open(sealed: Buffer, about: string): Buffer {
    const id = keyIdOf(sealed);
    const key = this.#find(id);
    if (key === undefined) throw new KeyringError(`The keyring has no key ${id}.`);
    const head = sealed.subarray(0, headBytes);
    const nonce = sealed.subarray(headBytes, headBytes + nonceBytes);
    try {
      const cipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
        .setAAD(bound(head, about))
        .setAuthTag(sealed.subarray(leastBytes - tagBytes, leastBytes));
      return Buffer.concat([cipher.update(sealed.subarray(leastBytes)), cipher.final()]);
    } catch (cause) {
      throw new KeyringError('A sealed value was changed, or belongs to something else.', {
        cause,
      });
    }
  }

  /** The ids of its keys, newest first. */
  get ids(): string[] {
    return this.#keys.map(({ id }) => id);
  }

  /** Adds a key, which seals from now on, in every process that has the file open. */
  async add(): Promise<string> {
    this.#refresh();
    const made = newKey();
    await this.#write([made, ...this.#keys]);
    return made.id;
  }

  /** Forgets a key that nothing is sealed with any more. */
  async drop(id: string): Promise<void> {
    this.#refresh();
    await this.#write(this.#keys.filter((key, place) => place === 0 || key.id !== id));
  }

  async #write(keys: readonly Key[]): Promise<void> {
    await replaceKept(this.#path, textOf(keys));
    this.#read();
  }

  #find(id: string): Buffer | undefined {
    const known = this.#keys.find((key) => key.id === id);
    if (known !== undefined) return known.key;
    this.#refresh();
    return this.#keys.find((key) => key.id === id)?.key;
  }

  #refresh(): void {
    if (stampOf(this.#path) !== this.#seen) this.#read();
  }

  #read(): void {
    const stamp = stampOf(this.#path);
    this.#keys = parse(this.#path, readFileSync(this.#path, 'utf8'));
    this.#seen = stamp;
  }
}

/** The id of the key that a value was sealed with. */
export function keyIdOf(sealed: Buffer): string {
  if (sealed.length < leastBytes || sealed[0] !== format) {
    throw new KeyringError('A sealed value is cut short or of an unknown format.');
  }
  return sealed.subarray(1, headBytes).toString('hex');
}

/** The head has one length, so it and the name cannot run into each other. */
function bound(head: Buffer, about: string): Buffer {
  return Buffer.concat([head, Buffer.from(about, 'utf8')]);
}

function newKey(): Key {
  return {
    id: randomBytes(idBytes).toString('hex'),
    key: randomBytes(32),
    made_at: new Date().toISOString(),
  };
}

function textOf(keys: readonly Key[]): string {
  const shown = keys.map(({ id, key, made_at }) => ({ id, key: key.toString('base64'), made_at }));
  return `${JSON.stringify({ version: 1, keys: shown }, null, 2)}\n`;
}

/** Changes whenever the file is replaced. Refuses one that others can read. */
function stampOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false, bigint: true });
  if (found === undefined) throw new KeyringError(`The keyring ${path} is gone.`);
  if ((found.mode & 0o077n) !== 0n) {
    throw new KeyringError(
      `The keyring ${path} can be read by others than its owner: chmod 600 it.`,
    );
  }
  return `${found.dev}:${found.ino}:${found.mtimeNs}:${found.size}`;
}

function parse(path: string, text: string): readonly Key[] {
  const broken = () => new KeyringError(`The keyring ${path} is not one that can be read.`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's own sentence quotes the text.
    throw broken();
  }
  const { version, keys } = (value ?? {}) as { version?: unknown; keys?: unknown };
  if (version !== 1 || !Array.isArray(keys) || keys.length === 0) throw broken();
  return keys.map((entry: { id?: unknown; key?: unknown; made_at?: unknown } | null) => {
    const { id, key, made_at } = entry ?? {};
    const bytes = typeof key === 'string' ? Buffer.from(key, 'base64') : Buffer.alloc(0);
    if (typeof id !== 'string' || !/^[0-9a-f]{8}$/.test(id) || bytes.length !== 32) throw broken();
    return { id, key: bytes, made_at: typeof made_at === 'string' ? made_at : '' };
  });
}
