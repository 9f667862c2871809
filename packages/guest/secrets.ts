// Secrets that were delivered to this computer: held in a memory file system and nowhere else. They outlive
// the agent, which finds them there again, and end with the boot.

import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Channel } from '@cubicle/contract/guest/channel.ts';
import {
  decodeMessage,
  encodeMessage,
  type SecretsBody,
  secretsBody,
} from '@cubicle/contract/guest/messages.ts';
import { sizes } from '@cubicle/contract/guest/sizes.ts';
import { envPattern, filePattern } from '@cubicle/contract/secret-names.ts';
import { type Account, findAccount, ownAccount } from './accounts.ts';
import { Refused } from './refused.ts';
import { shellHook } from './shell-hook.ts';

type Values = Readonly<Record<string, string>>;

export interface SecretsOptions {
  /** Must be in a memory file system. */
  readonly folder: string;
  /** Where shells are set up for everybody. */
  readonly etc: string;
  readonly user: string;
}

interface Held {
  readonly serial: number;
  readonly env: Values;
}

const nothing: Held = { serial: 0, env: {} };
/** The magic number of tmpfs. */
const tmpfs = 0x01021994;

export class Secrets {
  readonly #options: SecretsOptions;
  #held: Held;

  constructor(options: SecretsOptions) {
    this.#options = options;
    this.#held = this.#find();
  }

  /** The last delivery that is held; 0 for none. */
  get serial(): number {
    return this.#held.serial;
  }

  /** For commands and terminals. */
  get env(): Values {
    return this.#held.env;
  }

  async serve(channel: Channel): Promise<void> {
    this.#take(await readBody(channel));
    channel.accept(encodeMessage({}));
    channel.end();
  }

  /** In one turn, so that two deliveries do not mix. The number is noted last: a cut delivery is no delivery. */
  #take({ serial, replaces, env: brought, files }: SecretsBody): void {
    checkNames(brought, files);
    const { user } = this.#options;
    const account = findAccount(user) ?? ownAccount();
    const folder = this.#makeFolders(account);
    const env = replaces ? brought : { ...this.#held.env, ...brought };
    if (replaces) {
      for (const name of readdirSync(folder)) {
        if (!Object.hasOwn(files, name)) rmSync(join(folder, name), { recursive: true });
      }
    }
    for (const [name, value] of Object.entries(files))
      this.#put(join(folder, name), value, account);
    const variables = join(this.#options.folder, 'user/environment');
    this.#put(variables, exports(env), account);
    if (Object.keys(env).length > 0) shellHook(this.#options.etc, variables);
    this.#held = { serial, env };
    this.#put(this.#note, JSON.stringify(this.#held));
  }

  get #note(): string {
    return join(this.#options.folder, 'held.json');
  }

  /** The folders are root's, so that nobody puts a link where it writes; the user reads what is in them. */
  #makeFolders({ gid }: Account): string {
    const { folder } = this.#options;
    mkdirSync(folder, { recursive: true, mode: 0o711 });
    if (statfsSync(folder).type !== tmpfs) {
      throw new Refused('failed', { detail: `${folder} is not in memory` });
    }
    // What an agent left that was killed while it wrote.
    for (const name of readdirSync(folder)) {
      if (name.startsWith(draft)) rmSync(join(folder, name));
    }
    const files = join(folder, 'user/files');
    for (const made of [join(folder, 'user'), files]) {
      mkdirSync(made, { recursive: true, mode: 0o750 });
      chmodSync(made, 0o750);
      chownSync(made, process.getuid?.() ?? 0, gid);
    }
    return files;
  }

  /** Whole or not at all: whoever reads meanwhile has the old one. */
  #put(place: string, content: string, owner?: Account): void {
    const made = join(this.#options.folder, draft);
    rmSync(made, { force: true });
    writeFileSync(made, content, { mode: 0o600, flag: 'wx' });
    if (owner !== undefined) {
      chownSync(made, owner.uid, owner.gid);
      chmodSync(made, 0o400);
    }
    renameSync(made, place);
  }

  #find(): Held {
    try {
      if (statfsSync(this.#options.folder).type !== tmpfs) return nothing;
      const { serial, env } = JSON.parse(readFileSync(this.#note, 'utf8')) as Held;
      return { serial, env };
    } catch {
      return nothing;
    }
  }
}

const draft = '.draft';

function checkNames(env: Values, files: Values): void {
  const good =
    Object.keys(env).every((name) => envPattern.test(name)) &&
    Object.values(env).every((value) => !value.includes('\0')) &&
    Object.keys(files).every((name) => filePattern.test(name));
  if (!good) throw new Refused('invalid');
}

/** For shells to read. Some names are theirs and cannot be set, which is nobody's concern. */
function exports(env: Values): string {
  return Object.entries(env)
    .map(([name, value]) => `export ${name}='${value.replaceAll("'", `'\\''`)}' 2>/dev/null\n`)
    .join('');
}

async function readBody(channel: Channel): Promise<SecretsBody> {
  const pieces: Buffer[] = [];
  let length = 0;
  for (let piece = await channel.receive(); piece !== undefined; piece = await channel.receive()) {
    length += piece.bytes.length;
    if (length > sizes.secrets) throw new Refused('too_large');
    pieces.push(piece.bytes);
  }
  return decodeMessage(Buffer.concat(pieces), secretsBody);
}
