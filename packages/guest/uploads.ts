// Which temporary files are being written. An agent that is cut off leaves them behind; the next one
// finds their names here and removes them.

import { mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync, unlinkSync } from 'node:fs';
import { basename, join } from 'node:path';

export class Uploads {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(folder)) {
      try {
        rmSync(readlinkSync(join(folder, name)), { force: true });
      } catch {
        // What cannot be removed now cannot be later.
      }
      unlinkSync(join(folder, name));
    }
  }

  /** A link that leads to the file: made in one step, name and all. Returns what undoes it. */
  begin(path: string): () => void {
    const note = join(this.#folder, basename(path));
    symlinkSync(path, note);
    return () => unlinkSync(note);
  }
}
