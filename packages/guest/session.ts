// The desktop's session as the guest tells it: files that appear when the desktop is up.

import {
  closeSync,
  constants,
  existsSync,
  type FSWatcher,
  fstatSync,
  openSync,
  readFileSync,
  watch,
} from 'node:fs';
import { dirname } from 'node:path';

/** A session has a dozen variables, and those of the computer's template. */
const mostBytes = 2 * 1024 * 1024;

/** `NAME=value`, as systemd's EnvironmentFile has it. Nothing when there is no session. */
export function readSession(file: string): Record<string, string> | undefined {
  const text = readPlain(file);
  if (text === undefined) return undefined;
  const session: Record<string, string> = {};
  for (const [, name, value] of text.matchAll(assignment)) {
    if (name !== undefined && value !== undefined) session[name] = unquoted(value);
  }
  return session;
}

/** In quotes a value may have several lines. */
const assignment = /^([A-Za-z_][A-Za-z0-9_]*)=("(?:[^"\\]|\\[^])*"(?=\n|$)|'[^']*'(?=\n|$)|.*)$/gm;

/** The desktop's user may have put anything there: a link to what root alone may read, or a pipe. */
function readPlain(file: string): string | undefined {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  let fd: number | undefined;
  try {
    fd = openSync(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    const found = fstatSync(fd);
    return found.isFile() && found.size <= mostBytes ? readFileSync(fd, 'utf8') : undefined;
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function unquoted(value: string): string {
  if (!/^(["'])[^]*\1$/.test(value) || value.length < 2) return value;
  const inside = value.slice(1, -1);
  return value.startsWith('"') ? inside.replaceAll(/\\(["\\$`])/g, '$1') : inside;
}

/** Watches the folder, since the file comes and goes. */
export class DesktopWatch {
  readonly #file: string;
  readonly #watcher: FSWatcher;
  #ready: boolean;

  constructor(file: string, tell: (ready: boolean) => void) {
    this.#file = file;
    this.#watcher = watch(dirname(file), () => {
      const before = this.#ready;
      this.#ready = existsSync(file);
      if (this.#ready !== before) tell(this.#ready);
    });
    this.#watcher.on('error', () => {});
    this.#ready = existsSync(file);
  }

  get ready(): boolean {
    // A greeting says what is so now, and the watch what differs from it later.
    this.#ready = existsSync(this.#file);
    return this.#ready;
  }

  close(): void {
    this.#watcher.close();
  }
}
