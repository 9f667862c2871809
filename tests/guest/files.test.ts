// Files through the link: read whole and in ranges, written whole or not at all, listed within bounds.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import {
  chmod,
  chown,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import test, { type TestContext } from 'node:test';
import { execFileSync } from 'node:child_process';
import { limits } from '../../packages/contract/limits.ts';
import type { Failed, Result } from '../../packages/host/guest/result.ts';
import { unhung, until } from '../support/until.ts';
import { computer, context, failure, good, Rig } from './rig.ts';

const MiB = 1024 * 1024;
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

async function* pieces(bytes: Uint8Array, size = 65_536): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const put = (rig: Rig, path: string, text: string | Uint8Array, createOnly = false) =>
  rig.links.writeFile(context, computer, path, { createOnly }, pieces(Buffer.from(text)));

/** What a refusal says. */
function refusedWith(result: Result<object>): Failed {
  assert.ok(!result.ok, 'it should have been refused');
  return result;
}

test('a file of 64 MiB goes in and comes out the same', async (t) => {
  const rig = await Rig.of(t);
  const bytes = randomBytes(limits.file);
  const path = rig.at('files', 'large');
  const { bytes: written } = good(
    await rig.links.writeFile(context, computer, path, { createOnly: true }, pieces(bytes)),
  );
  assert.equal(written, limits.file);
  assert.equal(sha256(await readFile(path)), sha256(bytes));
  const hash = createHash('sha256');
  const read = good(await rig.links.readFile(context, computer, path));
  assert.deepEqual([read.start, read.length, read.size], [0, limits.file, limits.file]);
  for await (const piece of read.content) hash.update(piece);
  assert.equal(hash.digest('hex'), sha256(bytes));
});

test('one byte more than 64 MiB is too large, both ways, and leaves nothing', async (t) => {
  const rig = await Rig.of(t);
  const path = rig.at('files', 'larger');
  const source = pieces(Buffer.alloc(limits.file + 1), 5 * MiB);
  const result = await rig.links.writeFile(context, computer, path, { createOnly: false }, source);
  assert.equal(failure(result), 'file_too_large');
  assert.deepEqual(await readdir(rig.at('files')), []);
  await writeFile(path, '');
  await truncate(path, limits.file + 1);
  const read = refusedWith(await rig.links.readFile(context, computer, path));
  assert.deepEqual([read.failure, read.size], ['file_too_large', limits.file + 1]);
});

test('ranges are those of HTTP, cut to 64 MiB at the end they are not anchored to', async (t) => {
  const rig = await Rig.of(t);
  const path = rig.at('files', 'ranged');
  const bytes = randomBytes(100_000);
  await writeFile(path, bytes);
  const range = async (asked: Parameters<typeof rig.links.readFile>[3]) => {
    const { start, length, size, content } = good(
      await rig.links.readFile(context, computer, path, asked),
    );
    const got = Buffer.concat(await Array.fromAsync(content));
    assert.equal(size, bytes.length);
    assert.equal(got.length, length);
    assert.ok(got.equals(bytes.subarray(start, start + got.length)));
    return [start, got.length];
  };
  assert.deepEqual(await range({ first: 0, last: 0 }), [0, 1]);
  assert.deepEqual(await range({ first: 70_000, last: null }), [70_000, 30_000]);
  assert.deepEqual(await range({ first: 99_999, last: 2 ** 53 - 1 }), [99_999, 1]);
  assert.deepEqual(await range({ suffix: 5 }), [99_995, 5]);
  assert.deepEqual(await range({ suffix: 2 ** 50 }), [0, 100_000]);
  for (const none of [{ first: 100_000, last: null }, { suffix: 0 }]) {
    const refused = refusedWith(await rig.links.readFile(context, computer, path, none));
    assert.deepEqual([refused.failure, refused.size], ['range', 100_000]);
  }
  const empty = rig.at('files', 'empty');
  await writeFile(empty, '');
  assert.equal((await rig.content(empty)).length, 0);
  const nothing = await rig.links.readFile(context, computer, empty, { first: 0, last: null });
  assert.deepEqual([failure(nothing), refusedWith(nothing).size], ['range', 0]);

  const huge = rig.at('files', 'huge');
  await writeFile(huge, '');
  await truncate(huge, 3 * limits.file);
  const control = new AbortController();
  for (const [asked, start] of [
    [{ first: 10, last: null }, 10],
    [{ first: 10, last: 3 * limits.file }, 10],
    [{ suffix: 2 * limits.file }, 2 * limits.file],
  ] as const) {
    const read = good(await rig.links.readFile(control, computer, huge, asked));
    assert.deepEqual([read.start, read.length], [start, limits.file]);
  }
  control.abort();
});

test('what has no measure is sent whole, of unknown length', async (t) => {
  const rig = await Rig.of(t);
  const paths = [
    '/proc/self/status',
    '/proc/version',
    '/sys/kernel/mm/transparent_hugepage/enabled',
  ];
  for (const path of paths) {
    const asked = { first: 3, last: 5 };
    const read = good(await rig.links.readFile(context, computer, path, asked));
    assert.deepEqual([read.start, read.length, read.size], [0, null, null]);
    const text = String(Buffer.concat(await Array.fromAsync(read.content)));
    if (path !== '/proc/self/status') assert.equal(text, await readFile(path, 'utf8'));
    assert.ok(text.length > 10);
  }
});

test('what cannot be read is refused by what it is', async (t) => {
  const rig = await Rig.of(t);
  execFileSync('mkfifo', [rig.at('files', 'pipe')]);
  await symlink(rig.at('files', 'nowhere'), rig.at('files', 'dangling'));
  await symlink('loop', rig.at('files', 'loop'));
  await writeFile(rig.at('files', 'plain'), 'x');
  for (const [path, kind] of [
    [rig.at('files', 'nowhere'), 'no_file'],
    [rig.at('files', 'plain', 'below'), 'no_file'],
    [rig.at('files', 'dangling'), 'no_file'],
    [rig.at('files', 'loop'), 'no_file'],
    [rig.at('files'), 'refused_file'],
    [rig.at('files', 'pipe'), 'refused_file'],
    ['/dev/zero', 'refused_file'],
    [rig.at('files', 'n'.repeat(300)), 'refused_file'],
  ] as const) {
    const result = await unhung(path, rig.links.readFile(context, computer, path));
    assert.equal(failure(result), kind, path);
  }
});

test('a link is read through, within the guest', async (t) => {
  const rig = await Rig.of(t);
  await writeFile(rig.at('files', 'real'), 'through');
  await symlink('real', rig.at('files', 'link'));
  assert.equal(String(await rig.content(rig.at('files', 'link'))), 'through');
});

test('a file that shrinks while it is read breaks off and never looks complete', async (t) => {
  const rig = await Rig.of(t);
  const path = rig.at('files', 'shrinks');
  await writeFile(path, Buffer.alloc(20 * MiB, 1));
  const read = good(await rig.links.readFile(context, computer, path));
  await truncate(path, 10);
  await assert.rejects(Array.fromAsync(read.content), { kind: 'reset' });
  assert.equal(String(await rig.exec('echo fine').then(({ stdout }) => stdout)), 'fine\n');
});

test('a reader that stops lets the guest stop', async (t) => {
  const rig = await Rig.of(t);
  const path = rig.at('files', 'long');
  await writeFile(path, Buffer.alloc(20 * MiB, 1));
  for (let i = 0; i < 140; i += 1) {
    const read = good(await rig.links.readFile(context, computer, path));
    for await (const piece of read.content) {
      assert.ok(piece.length > 0);
      break;
    }
  }
  // More than a link has channels: each was given back.
  await until('the agent has closed them', async () => {
    const { stdout } = await rig.exec(`ls -l /proc/${rig.agent?.pid}/fd | grep -c ${path} || true`);
    return String(stdout) === '0\n';
  });
});

test('a file appears whole, in its place, with nothing beside it', async (t) => {
  const rig = await Rig.of(t);
  const path = rig.at('files', 'new');
  const go = Promise.withResolvers<void>();
  async function* source() {
    yield Buffer.from('first ');
    await go.promise;
    yield Buffer.from('second');
  }
  const writing = rig.links.writeFile(context, computer, path, { createOnly: false }, source());
  const [temporary] = await until('the upload has begun', async () => {
    const names = await readdir(rig.at('files'));
    return names.length > 0 && names;
  });
  assert.match(temporary as string, /^\.cubicle-[0-9a-f]{16}$/);
  go.resolve();
  assert.equal(good(await writing).bytes, 12);
  assert.deepEqual(await readdir(rig.at('files')), ['new']);
  assert.equal(await readFile(path, 'utf8'), 'first second');
  assert.equal((await stat(path)).mode & 0o7777, 0o644);
  assert.deepEqual(await readdir(rig.at('state', 'uploads')), []);
});

test('an upload that breaks off leaves what was there', async (t) => {
  const rig = await Rig.of(t);
  const path = rig.at('files', 'kept');
  await writeFile(path, 'before');
  async function* breaking() {
    yield Buffer.alloc(300_000);
    throw new Error('the client hung up');
  }
  const broken = rig.links.writeFile(context, computer, path, { createOnly: false }, breaking());
  await assert.rejects(broken, /the client hung up/);
  const control = new AbortController();
  const stalled = new Promise<never>(() => {});
  async function* stalling() {
    yield Buffer.alloc(300_000);
    await stalled;
  }
  const aborted = rig.links.writeFile(control, computer, path, { createOnly: false }, stalling());
  await until('it has begun', async () => (await readdir(rig.at('files'))).length === 2);
  control.abort(new Error('too slow'));
  await assert.rejects(aborted, /too slow/);
  await until('nothing else is left', async () => (await readdir(rig.at('files'))).length === 1);
  assert.equal(await readFile(path, 'utf8'), 'before');
});

test('an upload under way when the agent is killed is cleaned up by the next agent', async (t) => {
  const rig = await Rig.of(t);
  const stalled = new Promise<never>(() => {});
  async function* stalling() {
    yield Buffer.from('part');
    await stalled;
  }
  const path = rig.at('files', 'cut');
  const writing = rig.links.writeFile(context, computer, path, { createOnly: false }, stalling());
  await until('it has begun', async () => (await readdir(rig.at('files'))).length === 1);
  await rig.killAgent();
  assert.equal(failure(await unhung('the call', writing)), 'broken');
  assert.equal((await readdir(rig.at('files'))).length, 1);
  await rig.startAgent();
  assert.deepEqual(await readdir(rig.at('files')), []);
});

test('replacing keeps the mode; a link stays a link and its file is replaced', async (t) => {
  const rig = await Rig.of(t);
  const [path, link] = [rig.at('files', 'script'), rig.at('files', 'link')];
  await writeFile(path, 'old');
  await chmod(path, 0o750);
  await symlink('script', link);
  good(await put(rig, path, 'new'));
  assert.deepEqual([await readFile(path, 'utf8'), (await stat(path)).mode & 0o777], ['new', 0o750]);
  good(await put(rig, link, 'newer'));
  assert.equal(await readlink(link), 'script');
  assert.equal(await readFile(path, 'utf8'), 'newer');
});

test('what cannot be written is refused before its bytes are sent, naming a missing folder', async (t) => {
  const rig = await Rig.of(t);
  await symlink('nowhere', rig.at('files', 'dangling'));
  await writeFile(rig.at('files', 'plain'), 'x');
  execFileSync('mkfifo', [rig.at('files', 'pipe')]);
  for (const [path, kind] of [
    [rig.at('absent', 'file'), 'no_directory'],
    [rig.at('files', 'plain', 'below'), 'refused_file'],
    [rig.at('files'), 'refused_file'],
    [`${rig.at('files', 'new')}/`, 'refused_file'],
    [rig.at('files', 'pipe'), 'refused_file'],
    [rig.at('files', 'dangling'), 'refused_file'],
    [rig.at('files', 'n'.repeat(300)), 'refused_file'],
    ['/proc/cubicle-test', 'refused_file'],
  ] as const) {
    const never = new Promise<never>(() => {});
    async function* silent(): AsyncGenerator<Uint8Array> {
      yield never;
    }
    const writing = rig.links.writeFile(context, computer, path, { createOnly: false }, silent());
    const refused = refusedWith(await unhung(path, writing));
    assert.equal(refused.failure, kind, `${path}: ${refused.message}`);
    if (kind === 'no_directory') assert.ok(refused.message.includes(rig.at('absent')));
  }
});

test('create-only takes no place that is taken, be it by a link that leads nowhere', async (t) => {
  const rig = await Rig.of(t);
  const path = rig.at('files', 'once');
  good(await put(rig, path, 'first', true));
  assert.equal(failure(await put(rig, path, 'second', true)), 'file_exists');
  assert.equal(await readFile(path, 'utf8'), 'first');
  await symlink('nowhere', rig.at('files', 'dangling'));
  assert.equal(failure(await put(rig, rig.at('files', 'dangling'), 'x', true)), 'file_exists');
  assert.equal(failure(await put(rig, rig.at('files'), 'x', true)), 'file_exists');
});

test('of many that create at once exactly one does, and its file is whole', async (t) => {
  const rig = await Rig.of(t);
  for (let round = 0; round < 5; round += 1) {
    const path = rig.at('files', `race-${round}`);
    const texts = Array.from({ length: 12 }, (_, i) => String.fromCharCode(97 + i).repeat(200_000));
    const results = await Promise.all(texts.map((text) => put(rig, path, text, true)));
    const winners = results.flatMap((result, i) => (result.ok ? [i] : []));
    assert.equal(winners.length, 1);
    assert.equal(await readFile(path, 'utf8'), texts[winners[0] as number]);
    for (const result of results) if (!result.ok) assert.equal(result.failure, 'file_exists');
  }
  assert.equal((await readdir(rig.at('files'))).length, 5);
});

const needsRoot = { skip: process.getuid?.() !== 0 && 'needs root' };

test('what is written in the user’s home is the user’s, elsewhere root’s', needsRoot, async (t) => {
  const rig = await Rig.of(t, { agent: false });
  await rig.startAgent({ CUBICLE_USER: 'nobody' });
  const nobody = 65_534;
  await mkdir(rig.at('home', 'deep'));
  await symlink(rig.at('home', 'deep'), rig.at('files', 'into-home'));
  const owner = async (path: string) => {
    const { uid, gid } = await lstat(path);
    return [uid, gid];
  };
  for (const path of [
    rig.at('home', 'a'),
    rig.at('home', 'deep', 'b'),
    rig.at('files', 'into-home', 'c'),
  ]) {
    good(await put(rig, path, 'x'));
    assert.deepEqual(await owner(path), [nobody, nobody], path);
  }
  good(await put(rig, rig.at('files', 'd'), 'x'));
  assert.deepEqual(await owner(rig.at('files', 'd')), [0, 0]);
  // The name of the home is not the beginning of another folder's.
  await mkdir(`${rig.at('home')}-other`);
  good(await put(rig, `${rig.at('home')}-other/e`, 'x'));
  assert.deepEqual(await owner(`${rig.at('home')}-other/e`), [0, 0]);
  // Elsewhere a file that is replaced keeps its owner.
  await chown(rig.at('files', 'd'), 12_345, 12_346);
  good(await put(rig, rig.at('files', 'd'), 'y'));
  assert.deepEqual(await owner(rig.at('files', 'd')), [12_345, 12_346]);
});

async function listed(t: TestContext, make: (folder: string, rig: Rig) => Promise<unknown>) {
  const rig = await Rig.of(t);
  await make(rig.at('files'), rig);
  const { entries, truncated, skipped } = good(
    await rig.links.listFiles(context, computer, rig.at('files')),
  );
  return { entries: entries.toSorted((a, b) => (a.name < b.name ? -1 : 1)), truncated, skipped };
}

test('a listing tells types and sizes and follows no link', async (t) => {
  const listing = await listed(t, async (folder) => {
    await writeFile(`${folder}/a file`, '12345');
    await mkdir(`${folder}/dir`);
    await symlink('dir', `${folder}/link`);
    execFileSync('mkfifo', [`${folder}/pipe`]);
    await writeFile(`${folder}/žluťoučký 👩‍💻`, '');
  });
  assert.deepEqual(listing, {
    entries: [
      { name: 'a file', type: 'file', size_bytes: 5 },
      { name: 'dir', type: 'directory', size_bytes: null },
      { name: 'link', type: 'symlink', size_bytes: null },
      { name: 'pipe', type: 'special', size_bytes: null },
      { name: 'žluťoučký 👩‍💻', type: 'file', size_bytes: 0 },
    ],
    truncated: false,
    skipped: 0,
  });
});

test('names with control characters or not in UTF-8 are skipped and counted', async (t) => {
  const listing = await listed(t, async (folder) => {
    for (const name of ['new\nline', 'bell\u0007', 'c1\u0085', 'fine']) {
      await writeFile(`${folder}/${name}`, '');
    }
    const raw = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x66, 0xff, 0xfe])]);
    await writeFile(raw, '');
  });
  assert.deepEqual(
    [listing.entries.map(({ name }) => name), listing.skipped, listing.truncated],
    [['fine'], 4, false],
  );
});

test('a listing examines 512 names and tells 128 KiB, and says when there are more', async (t) => {
  const make = (count: number, name: (i: number) => string) => async (folder: string) =>
    Promise.all(Array.from({ length: count }, (_, i) => mkdir(`${folder}/${name(i)}`)));
  const all = await listed(
    t,
    make(512, (i) => `d${i}`),
  );
  assert.deepEqual([all.entries.length, all.truncated], [512, false]);
  const more = await listed(
    t,
    make(513, (i) => `d${i}`),
  );
  assert.deepEqual([more.entries.length, more.truncated], [512, true]);
  const mixed = await listed(
    t,
    make(520, (i) => (i % 2 === 0 ? `d${i}` : `bad\n${i}`)),
  );
  assert.deepEqual([mixed.entries.length + mixed.skipped, mixed.truncated], [512, true]);
  const long = await listed(
    t,
    make(512, (i) => `${i}-`.padEnd(250, 'x')),
  );
  assert.equal(long.truncated, true);
  const told = Buffer.byteLength(JSON.stringify(long.entries));
  assert.ok(told <= 128 * 1024 && told > 127 * 1024, String(told));
});

test('what is no directory is not listed, nor a link to one', async (t) => {
  const rig = await Rig.of(t);
  await writeFile(rig.at('files', 'plain'), 'x');
  await symlink(rig.at('files'), rig.at('files', 'link'));
  for (const [path, kind] of [
    [rig.at('absent'), 'no_file'],
    [rig.at('files', 'plain'), 'refused_file'],
    [rig.at('files', 'link'), 'refused_file'],
    [`${rig.at('files', 'link')}/`, 'refused_file'],
  ] as const) {
    assert.equal(failure(await rig.links.listFiles(context, computer, path)), kind, path);
  }
  good(await rig.links.listFiles(context, computer, `${rig.at('files')}//`));
  good(await rig.links.listFiles(context, computer, '/'));
});
