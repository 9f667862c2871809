// Images, each made once per recipe and kept in the user's cache folder.

import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { machineArchive } from './archive.ts';
import { bootstrap } from './bootstrap.ts';
import { takeBuildLock } from './build-lock.ts';
import { removeBuildFolder } from './leftovers.ts';
import { writeMetadata } from './metadata.ts';
import { type Recipe, recipeDigest, recipeFolder, release, tilingFolder } from './recipe.ts';
import { BuildStages, type Progress } from './stages.ts';
import { ensureTools } from './tools.ts';

export interface Image {
  readonly digest: string;
  readonly metadata: string;
  readonly rootfs: string;
}

export interface ImageOptions {
  /** Defaults to CUBICLE_CACHE, then ~/.cache/cubicle. */
  readonly cacheDir?: string | undefined;
  readonly say: (line: string) => void;
  readonly progress: (progress: Progress) => void;
  /** Ends a build, and removes what it made so far. */
  readonly signal?: AbortSignal | undefined;
  /** Behind everything else that the machine does. */
  readonly unhurried?: boolean | undefined;
  /** Another folder for the base recipe, for tests. */
  readonly recipe?: string | undefined;
}

const defaultCacheDir = (): string =>
  process.env['CUBICLE_CACHE'] || join(homedir(), '.cache/cubicle');

/** What is being made has this prefix; the image itself appears by a rename. */
const unfinished = 'making-';

const keepUnusedMs = 30 * 24 * 3_600_000;

export function ensureBaseImage(options: ImageOptions): Promise<Image> {
  return ensureImage({ name: 'base', folder: options.recipe ?? recipeFolder }, options);
}

/** Added to the base image, which is made first if need be. */
export async function ensureTilingImage(options: ImageOptions): Promise<Image> {
  const parent = await ensureBaseImage(options);
  return ensureImage({ name: 'tiling', folder: tilingFolder, parent }, options);
}

/** Without making it. */
export function tilingDigest(base: string): Promise<string> {
  return recipeDigest(tilingFolder, base);
}

/** Returns at once when the image is there; else makes it, or waits for the process that does. */
async function ensureImage(recipe: Recipe, options: ImageOptions): Promise<Image> {
  const { name } = recipe;
  const folder = resolve(options.cacheDir ?? defaultCacheDir(), 'images');
  const digest = await recipeDigest(recipe.folder, recipe.parent?.digest);
  const image = imageIn(join(folder, `${name}-${digest}`), digest);
  if (await isWhole(image)) {
    await noteUse(folder, `${name}-${digest}`);
    return image;
  }
  await mkdir(folder, { recursive: true });
  const lock = await takeBuildLock(
    join(folder, 'lock'),
    () => options.say(`Another process is making an image; the ${name} image waits for it`),
    options.signal,
  );
  try {
    if (!(await isWhole(image))) await make(folder, digest, recipe, options);
    return image;
  } finally {
    await lock.release();
  }
}

async function make(
  folder: string,
  digest: string,
  recipe: Recipe,
  { say, progress, signal, unhurried }: ImageOptions,
): Promise<void> {
  if (process.geteuid?.() !== 0) throw new Error('Images can only be made by root.');
  // Ours alone while we hold the lock: whatever is unfinished, nobody is finishing it.
  for (const name of await readdir(folder)) {
    if (name.startsWith(unfinished)) await removeBuildFolder(join(folder, name));
  }
  const archive = await machineArchive(release);
  await ensureTools(say);
  say(`Making the ${recipe.name} image, once for this version of its recipe`);
  const work = join(folder, `${unfinished}${digest}`);
  const result = join(work, 'image');
  const downloads = join(folder, 'downloads');
  try {
    await mkdir(result, { recursive: true });
    const { metadata, rootfs } = imageIn(result, digest);
    const stages = new BuildStages(progress);
    await bootstrap({
      recipe,
      archive,
      work,
      downloads,
      squashfs: rootfs,
      stages,
      unhurried,
      signal,
    });
    if ((await recipeDigest(recipe.folder, recipe.parent?.digest)) !== digest) {
      throw new Error(`The recipe of the ${recipe.name} image was changed while it was made.`);
    }
    await writeMetadata(result, recipe.name, digest);
    await Promise.all([metadata, rootfs].map(syncFile));
    await rename(result, join(folder, `${recipe.name}-${digest}`));
    await rm(downloads, { recursive: true, force: true });
    stages.finished();
  } finally {
    await removeBuildFolder(work);
  }
}

/** Another checkout may have another recipe, so images go when nobody has used them for long. */
async function noteUse(folder: string, used: string): Promise<void> {
  const now = new Date();
  await utimes(join(folder, used), now, now);
  for (const name of await readdir(folder)) {
    if (!/^(base|tiling)-/.test(name) || name === used) continue;
    const { mtime } = await stat(join(folder, name));
    const unusedMs = now.getTime() - mtime.getTime();
    if (unusedMs > keepUnusedMs) await rm(join(folder, name), { recursive: true, force: true });
  }
}

const imageIn = (folder: string, digest: string): Image => ({
  digest,
  metadata: join(folder, 'metadata.tar'),
  rootfs: join(folder, 'rootfs.squashfs'),
});

/** Before the rename: after a power cut there is either the whole file or no image. */
async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

async function isWhole({ metadata, rootfs }: Image): Promise<boolean> {
  const looks = [metadata, rootfs].map((file) => stat(file).catch(() => undefined));
  return (await Promise.all(looks)).every((found) => found?.isFile() === true);
}
