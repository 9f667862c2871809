// What the host gives a guest: a folder with the socket its agent calls and the computer's description.
// Mounted read-only, so that nothing a guest does there reaches the host's files.

import { chmod, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from './whole-file.ts';

export interface Description {
  /** The instance's, which stays the same when a computer moves into it: a copied disk is known by it. */
  readonly id: string;
  readonly resolution: string;
  readonly hostname: string;
}

export class LinkFolders {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  of(instance: string): string {
    return join(this.#root, instance);
  }

  async describe(description: Description): Promise<string> {
    const folder = this.of(description.id);
    await mkdir(folder, { recursive: true });
    // The guest's root is nobody here. Said apart from mkdir, which the umask has a word in.
    await chmod(folder, 0o755);
    await writeWhole(join(folder, 'computer.json'), `${JSON.stringify(description)}\n`, 0o644);
    return folder;
  }

  /** Takes away those of no instance: left by a daemon that was killed before it made one, or after it deleted one. */
  async keepOnly(instances: ReadonlySet<string>): Promise<void> {
    const names = await readdir(this.#root).catch((): string[] => []);
    for (const name of names) if (!instances.has(name)) await this.remove(name);
  }

  async remove(instance: string): Promise<void> {
    await rm(this.of(instance), { recursive: true, force: true });
  }
}
