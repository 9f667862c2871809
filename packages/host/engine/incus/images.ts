/** Keeps images in Incus under the digest of the recipe that they were made by. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { type Context, EngineError, type ImageFiles } from '../engine.ts';
import type { IncusClient, Upload } from './client.ts';

const aliasPath = '/1.0/images/aliases';
const prefix = 'cubicle-';
const aliasOf = (digest: string): string => `${prefix}${digest}`;

export async function listImages(context: Context, client: IncusClient): Promise<string[]> {
  const aliases = await client.get<{ name: string }[]>(context, `${aliasPath}?recursion=1`);
  const names = aliases.map(({ name }) => name).filter((name) => name.startsWith(prefix));
  return names.map((name) => name.slice(prefix.length));
}

/** Incus's own name of the image, which is the digest of its files. */
export async function findImage(
  context: Context,
  client: IncusClient,
  digest: string,
): Promise<string | undefined> {
  const path = `${aliasPath}/${encodeURIComponent(aliasOf(digest))}`;
  return (await client.find<{ target: string }>(context, path))?.target;
}

/** The alias comes last: an image without one is of no use to anybody and is found again here. */
export async function importImage(
  context: Context,
  client: IncusClient,
  digest: string,
  files: ImageFiles,
): Promise<void> {
  if ((await findImage(context, client, digest)) !== undefined) return;
  const target = await sendImage(context, client, files);
  await client.change(context, 'POST', aliasPath, { name: aliasOf(digest), target });
}

/** Returns Incus's name of it. Incus refuses an image that it has, under whatever alias. */
async function sendImage(
  context: Context,
  client: IncusClient,
  files: ImageFiles,
): Promise<string> {
  try {
    const { fingerprint } = await client.change(
      context,
      'POST',
      '/1.0/images',
      await uploadOf(files),
    );
    return String(fingerprint);
  } catch (error) {
    if (!(error instanceof EngineError) || !/same fingerprint/.test(error.message)) throw error;
    return await fingerprintOf(context, files);
  }
}

/** Computers made from it keep their disks. Other digests may share the image. */
export async function removeImage(
  context: Context,
  client: IncusClient,
  digest: string,
): Promise<void> {
  const fingerprint = await findImage(context, client, digest);
  if (fingerprint === undefined) return;
  const path = `/1.0/images/${fingerprint}`;
  const image = await client.find<{ aliases: { name: string }[] }>(context, path);
  if (image?.aliases.every(({ name }) => name === aliasOf(digest)) ?? false) {
    await client.remove(context, path);
  } else {
    await client.remove(context, `${aliasPath}/${encodeURIComponent(aliasOf(digest))}`);
  }
}

/** As Incus reckons it: over both files in this order. 2.6 s for 400 MB on two busy cores. */
async function fingerprintOf({ signal }: Context, files: ImageFiles): Promise<string> {
  const hash = createHash('sha256');
  for (const file of [files.metadata, files.rootfs]) {
    for await (const chunk of createReadStream(file, { signal })) hash.update(chunk as Buffer);
  }
  return hash.digest('hex');
}

/** A form of two files, sent as it is read. */
async function uploadOf({ metadata, rootfs }: ImageFiles): Promise<Upload> {
  const boundary = 'cubicle-image';
  const head = (name: string, first: boolean) =>
    Buffer.from(
      `${first ? '' : '\r\n'}--${boundary}\r\nContent-Disposition: form-data; name="${name}"; filename="${name}"\r\nContent-Type: application/octet-stream\r\n\r\n`,
    );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  const heads = [head('metadata', true), head('rootfs', false)] as const;
  const sizes = await Promise.all([metadata, rootfs].map(sizeOf));
  const fixed = heads[0].length + heads[1].length + tail.length;
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    length: sizes.reduce((sum, size) => sum + size, fixed),
    open: () =>
      Readable.from(
        (async function* parts(): AsyncGenerator<Buffer> {
          yield heads[0];
          yield* createReadStream(metadata);
          yield heads[1];
          yield* createReadStream(rootfs, { highWaterMark: 1024 * 1024 });
          yield tail;
        })(),
        { objectMode: false },
      ),
  };
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (cause) {
    throw new EngineError('absent', `The image's file ${file} is not there`, cause);
  }
}
