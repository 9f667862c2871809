// The recipes of the images and the digests that images are kept by.

import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Guests of Debian 13 do not boot on hosts with cgroup version 1: systemd 256 refuses it. */
export const release = 'bookworm';

/** Raised when the same recipe makes another image than before. */
const format = 1;

export interface Recipe {
  /** Also the template's. */
  readonly name: string;
  readonly folder: string;
  /** The image that it adds to; without one it begins with nothing. */
  readonly parent?: { readonly digest: string; readonly rootfs: string };
}

const folderOf = (name: string): string =>
  fileURLToPath(new URL(`recipes/${name}`, import.meta.url));
export const recipeFolder = folderOf('base');
export const tilingFolder = folderOf('tiling');

const architectures: Partial<Record<NodeJS.Architecture, string>> = {
  x64: 'amd64',
  arm64: 'arm64',
};

/** As Debian spells it. */
export function architecture(): string {
  const name = architectures[process.arch];
  if (name === undefined) throw new Error(`No base image is made for ${process.arch}.`);
  return name;
}

/** Over names and contents, neither modes nor times: a checkout elsewhere has the same digest. */
export async function recipeDigest(folder = recipeFolder, parent?: string): Promise<string> {
  const hash = createHash('sha256');
  const add = (text: string | Buffer) => hash.update(`${text.length}\n`).update(text);
  for (const constant of [`${format}`, release, architecture()]) add(constant);
  if (parent !== undefined) add(parent);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  for (const path of files.map((file) => join(file.parentPath, file.name)).toSorted()) {
    add(relative(folder, path));
    add(await readFile(path));
  }
  return hash.digest('hex');
}

/** Names in the order of the file; `#` starts a comment. */
export async function recipePackages(folder: string): Promise<string[]> {
  const text = await readFile(join(folder, 'packages'), 'utf8');
  return text.replaceAll(/#.*/g, '').split(/\s+/).filter(Boolean);
}
