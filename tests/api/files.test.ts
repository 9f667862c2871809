import assert from 'node:assert/strict';
import { mkdir, open, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { assertRefused } from '../support/assertions.ts';
import type { Client } from '../support/client.ts';
import { made } from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';
import type { TestAgent } from '../support/simulated-host.ts';

const MiB = 2 ** 20;

suite('files', () => {
  let service: TestService;
  let as: Client;
  let id: string;
  let agent: TestAgent;
  before(async () => {
    service = await startService({ simulated: true });
    ({ as } = await service.account());
    ({ id } = await made(as));
    agent = await service.host.agentOf(id);
  });
  after(() => service.stop());

  const at = (path: string) => `/computers/${id}/files?path=${encodeURIComponent(path)}`;
  const get = (path: string, range?: string) =>
    as.get(at(path), range === undefined ? {} : { headers: { range } });
  const put = (path: string, raw: string | Buffer, query = '') =>
    as.send('PUT', at(path) + query, { raw });
  const list = (path: string) =>
    as.get(`/computers/${id}/files/list?path=${encodeURIComponent(path)}`);
  /** A file of this size that takes no room. */
  const sparse = async (name: string, size: number) => {
    const file = await open(agent.at(name), 'w');
    await file.truncate(size);
    await file.close();
    return agent.at(name);
  };

  test('wire-guest 9: the raw body becomes the file, and comes back byte by byte', async () => {
    const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, n) => n % 256));
    for (const [name, content] of Object.entries({ plain: bytes, empty: Buffer.alloc(0) })) {
      const path = agent.at(name);
      const written = await put(path, content);
      assert.deepEqual([written.status, written.body], [200, { path, bytes: content.length }]);
      const read = await get(path);
      assert.equal(read.status, 200);
      assert.ok(read.bytes.equals(content));
      assert.deepEqual(
        ['content-length', 'content-type', 'accept-ranges', 'content-range'].map(
          (h) => read.headers[h],
        ),
        [`${content.length}`, 'application/octet-stream', 'bytes', undefined],
      );
      assert.equal(read.headers['content-disposition'], `attachment; filename="${name}"`);
    }
    const odd = agent.at('ü "quoted" ✓\\');
    await put(odd, 'x');
    const { headers } = await get(odd);
    assert.match(headers['content-disposition'] ?? '', /^attachment; filename="[\x20-\x7e]+"$/);
    await put(agent.at('plain'), 'shorter');
    assert.equal((await get(agent.at('plain'))).text, 'shorter');
  });

  test('wire-guest 9: one range in its three forms is 206; others are ignored', async () => {
    const path = agent.at('digits');
    await writeFile(path, '0123456789');
    const ranges = {
      'bytes=0-0': ['0', '0-0'],
      'bytes=2-4': ['234', '2-4'],
      'bytes=7-': ['789', '7-9'],
      'bytes=7-99': ['789', '7-9'],
      'bytes=-3': ['789', '7-9'],
      'bytes=-99': ['0123456789', '0-9'],
    };
    for (const [range, [text, window]] of Object.entries(ranges)) {
      const answer = await get(path, range);
      assert.deepEqual(
        [
          answer.status,
          answer.text,
          answer.headers['content-range'],
          answer.headers['content-length'],
        ],
        [206, text, `bytes ${window}/10`, `${text?.length}`],
        range,
      );
    }
    for (const range of [
      'bytes=0-1,3-4',
      'bytes=4-2',
      'bytes=',
      'bytes=-',
      'lines=0-1',
      'bytes=a-b',
      '0-1',
    ]) {
      const answer = await get(path, range);
      assert.deepEqual([answer.status, answer.text], [200, '0123456789'], range);
    }
  });

  test('Part 7, wire-guest 9: a range without a byte of the file is 416 with its length', async () => {
    const [path, empty] = [agent.at('ten'), agent.at('none')];
    await writeFile(path, '0123456789');
    await writeFile(empty, '');
    for (const [where, range, size] of [
      [path, 'bytes=10-', 10],
      [path, 'bytes=99-100', 10],
      [path, 'bytes=-0', 10],
      [path, `bytes=${'9'.repeat(30)}-`, 10],
      [empty, 'bytes=0-', 0],
      [empty, 'bytes=-1', 0],
    ] as const) {
      const answer = await get(where, range);
      assertRefused(answer, 416);
      assert.equal(answer.headers['content-range'], `bytes */${size}`);
    }
  });

  test('wire-guest 9, Part 7: past 64 MiB a whole download is 413, and a window is trimmed at its free end', async () => {
    assert.equal((await get(await sparse('largest', 64 * MiB))).bytes.length, 64 * MiB);
    const size = 64 * MiB + 10;
    const path = await sparse('larger', size);
    const whole = await get(path);
    assertRefused(whole, 413);
    assert.match(whole.body.error, /64 MiB/);
    const windows = {
      'bytes=5-': `5-${64 * MiB + 4}`,
      [`bytes=-${size}`]: `10-${size - 1}`,
      [`bytes=0-${size}`]: `0-${64 * MiB - 1}`,
    };
    for (const [range, window] of Object.entries(windows)) {
      const answer = await get(path, range);
      assert.deepEqual(
        [answer.status, answer.headers['content-range'], answer.bytes.length],
        [206, `bytes ${window}/${size}`, 64 * MiB],
      );
    }
  });

  test('wire-guest 9: what has no measure comes whole, without ranges', async () => {
    const answer = await get('/proc/version', 'bytes=0-1');
    assert.deepEqual([answer.status, answer.headers['accept-ranges']], [200, 'none']);
    assert.equal(answer.text, await readFile('/proc/version', 'utf8'));
  });

  test('Part 1 3, wire-guest 9: HEAD tells the whole file’s length, and ignores a range', async () => {
    const path = agent.at('head');
    await writeFile(path, '0123456789');
    const answer = await as.head(at(path), { headers: { range: 'bytes=0-1' } });
    assert.deepEqual(
      [answer.status, answer.headers['content-length'], answer.text],
      [200, '10', ''],
    );
    assert.equal((await as.head(at(agent.at('missing')))).status, 404);
  });

  test('wire-guest 9, Part 8 Sizes: an upload of 64 MiB is taken, one byte more is 413 and leaves nothing', async () => {
    const largest = Buffer.alloc(64 * MiB);
    const path = agent.at('uploaded');
    assert.deepEqual((await put(path, largest)).body, { path, bytes: 64 * MiB });
    const refused = await put(agent.at('refused'), Buffer.alloc(64 * MiB + 1));
    assertRefused(refused, 413);
    assert.match(refused.body.error, /64 MiB/);
    assertRefused(await get(agent.at('refused')), 404);
  });

  test('wire-guest 9: create-only takes a free path and leaves a taken one as it is', async () => {
    const path = agent.at('once');
    assert.equal((await put(path, 'first', '&overwrite=false')).status, 200);
    assertRefused(await put(path, 'second', '&overwrite=false'), 409, 'exists');
    assert.equal(await readFile(path, 'utf8'), 'first');
    assert.equal((await put(path, 'third', '&overwrite=true')).status, 200);
    assert.equal(await readFile(path, 'utf8'), 'third');
    const race = await Promise.all(
      ['a', 'b', 'c', 'd'].map((text) => put(agent.at('raced'), text, '&overwrite=false')),
    );
    assert.deepEqual(race.map(({ status }) => status).toSorted(), [200, 409, 409, 409]);
    const left = (await readdir(agent.folder)).filter((name) => name.startsWith('.cubicle'));
    assert.deepEqual(left, []);
  });

  test('wire-guest 9: a parameter it cannot take is 400 and named', async () => {
    const long = `/${'é'.repeat(2048)}`;
    const paths = ['', 'relative', './x', '/a\u0000b', '/a\nb', '/a\u007fb', long].map(
      (path) => `path=${encodeURIComponent(path)}`,
    );
    const file = `path=${encodeURIComponent(agent.at('file'))}`;
    const every = ['', ...paths, `${file}&${file}`, 'Path=/x'];
    const waking = [
      `${file}&no_wake=`,
      `${file}&no_wake=0`,
      `${file}&no_wake=true`,
      `${file}&no_wake=1&no_wake=1`,
    ];
    const writing = [`${file}&overwrite=`, `${file}&overwrite=no`, `${file}&overwrite=1`];
    const where = `/computers/${id}/files`;
    for (const query of every) assertRefused(await as.get(`${where}/list?${query}`), 400);
    for (const query of [...every, ...waking]) {
      const answer = await as.get(`${where}?${query}`);
      assertRefused(answer, 400);
      assert.match(answer.body.error, query.includes('no_wake') ? /no_wake/ : /path/);
    }
    for (const query of [...every, ...waking, ...writing]) {
      assertRefused(await as.send('PUT', `${where}?${query}`, { raw: 'x' }), 400);
    }
    assertRefused(await get(agent.at('file')), 404);
  });

  test('wire-guest 9, Part 7: what is not there is 404, what is no file or directory 400', async () => {
    const folder = agent.at('folder');
    await mkdir(folder);
    await writeFile(join(folder, 'file'), 'x');
    await symlink(folder, agent.at('link'));
    assertRefused(await get(agent.at('missing')), 404);
    assertRefused(await list(agent.at('missing')), 404);
    assertRefused(await put(agent.at('missing/file'), 'x'), 404);
    for (const answer of [
      await get(folder),
      await get('/dev/null'),
      await put(folder, 'x'),
      await put(`${folder}/`, 'x'),
      await list(join(folder, 'file')),
      await list(agent.at('link')),
      await put(join(folder, 'n'.repeat(300)), 'x'),
    ]) {
      assertRefused(answer, 400);
      assert.match(answer.body.error, /^The .*\.$/);
    }
  });

  test('wire-guest 9: a listing has exactly its fields, says what it left out, and follows no link', async () => {
    const folder = agent.at('listed');
    await mkdir(join(folder, 'inner'), { recursive: true });
    await writeFile(join(folder, 'file'), 'four');
    await writeFile(join(folder, 'con\ntrol'), 'x');
    await symlink('/nowhere', join(folder, 'link'));
    const { body } = await list(folder);
    const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
    assert.deepEqual(
      { ...body, entries: body.entries.toSorted(byName) },
      {
        path: folder,
        entries: [
          { name: 'file', type: 'file', size_bytes: 4 },
          { name: 'inner', type: 'directory' },
          { name: 'link', type: 'symlink' },
        ],
        truncated: false,
        skipped: 1,
      },
    );
    assert.equal((await list(`${folder}/../listed/`)).body.path, `${folder}/../listed/`);
    const many = agent.at('many');
    await mkdir(many);
    await Promise.all(Array.from({ length: 513 }, (_, n) => writeFile(join(many, `${n}`), '')));
    const cut = (await list(many)).body;
    assert.deepEqual([cut.entries.length, cut.truncated], [512, true]);
  });
});
