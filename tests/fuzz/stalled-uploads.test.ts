// Uploads that stall, drip, break off or never end: each is answered where somebody is left to answer,
// none holds the service up, and nothing of them is obeyed.

import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { after, before, suite, test } from 'node:test';
import { basePath } from '../../packages/contract/routes.ts';
import type { Client } from '../support/client.ts';
import { startService, type TestService } from '../support/service.ts';
import { beginSlowly } from '../support/slow-request.ts';
import { until } from '../support/until.ts';
import { type RawAnswer, RawConnection } from './raw-connection.ts';
import { Verdict } from './verdict.ts';

/** Longer than any of these tests may take. */
const never = 120_000;
const verdict = new Verdict();

/** A body of this many bytes is announced, or chunks are. */
function head(key: string | undefined, framing: string, path = '/workspaces'): string {
  const credential = key === undefined ? '' : `Authorization: Bearer ${key}\r\n`;
  return `POST ${basePath}${path} HTTP/1.1\r\nHost: localhost\r\n${credential}${framing}\r\n\r\n`;
}

const ofLength = (bytes: number) => `Content-Length: ${bytes}`;
const inChunks = 'Transfer-Encoding: chunked';
const expecting = 'Expect: 100-continue\r\n';

function open({ baseUrl }: TestService): Promise<RawConnection> {
  return RawConnection.open(Number(new URL(baseUrl).port));
}

/** An error in the shape of all errors, the last thing said on its connection. */
async function assertRefused(connection: RawConnection, status: number): Promise<RawAnswer> {
  const answer = await connection.answer();
  assert.ok(answer, 'closed without an answer');
  assert.equal(answer.status, status, answer.body.toString());
  verdict.hold(answer, { method: 'POST', madeUpIds: [] });
  assert.deepEqual(answer.all('connection'), ['close']);
  assert.equal((await connection.end()).length, 0, 'said more after its last answer');
  return answer;
}

async function assertNothingMade(as: Client): Promise<void> {
  assert.deepEqual((await as.get('/workspaces')).body, []);
}

suite('stalled uploads', { timeout: 300_000 }, () => {
  test('Part 7: an upload that stalls is 408, and its connection closes', async () => {
    // Only the idle time can end it.
    const service = await startService({ bodyTimes: { idleMs: 200, totalMs: never } });
    try {
      const { as, key } = await service.account();
      const beginnings = [
        [ofLength(40), '{"na'],
        [ofLength(40), ''],
        [inChunks, '5\r\n{"nam\r\n'],
        [inChunks, '5\r\n{"n'],
        [inChunks, '2\r\n{}\r\n0\r\n'],
      ] as const;
      const stalling = beginnings.map(async ([framing, sent]) => {
        const connection = await open(service);
        connection.write(head(key.raw, framing) + sent);
        await assertRefused(connection, 408);
      });
      await Promise.all(stalling);
      await assertNothingMade(as);
    } finally {
      await service.stop();
    }
  });

  test('an upload that came while the service stood still is read before it is judged', async () => {
    const service = await startService({ bodyTimes: { idleMs: 1_500, totalMs: 1_500 } });
    try {
      const { as, key } = await service.account();
      const url = `${service.baseUrl}/workspaces`;
      const begun = await beginSlowly(url, key.raw, { method: 'POST', json: { name: 'whole' } });
      const finished = begun.finish();
      // Client and service are one process; what the one has written waits for the other to wake up.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
      const { status, text } = await finished;
      assert.equal(status, 200, text);
      assert.equal((await as.get('/workspaces')).body.length, 1);
    } finally {
      await service.stop();
    }
  });

  test('Part 7: an upload that drips is 408 once its time is up, however steadily it drips', async () => {
    // Only the total time can end it.
    const service = await startService({ bodyTimes: { idleMs: never, totalMs: 1_000 } });
    try {
      const { as, key } = await service.account();
      for (const [framing, drop] of [
        [ofLength(4_000), ' '],
        [inChunks, '1\r\n \r\n'],
      ] as const) {
        const connection = await open(service);
        connection.write(head(key.raw, framing));
        const dripping = setInterval(() => connection.write(drop), 10);
        try {
          await assertRefused(connection, 408);
        } finally {
          clearInterval(dripping);
          connection.vanish();
        }
      }
      await assertNothingMade(as);
    } finally {
      await service.stop();
    }
  });
});

suite('uploads on a patient service', { timeout: 300_000 }, () => {
  let service: TestService;
  let as: Client;
  let key: string;
  before(async () => {
    // No time ends anything here.
    service = await startService({ bodyTimes: { idleMs: never, totalMs: never }, drainMs: 100 });
  });
  after(() => service.stop());

  async function newAccount(): Promise<void> {
    const made = await service.account();
    as = made.as;
    key = made.key.raw;
  }

  test('Part 7: whoever goes away in the middle of an upload leaves nothing behind', async () => {
    await newAccount();
    const { account } = await as.get('/whoami').then(({ body }) => body);
    const answered = await postsAnswered(service);
    const sockets = openSockets();
    const uploads = [ofLength(40), inChunks].flatMap((framing) => [
      // Before anything is known of the key, and once the call is admitted and its body wanted.
      ...(['vanish', 'finish'] as const).map((way) => ({ framing, way, expect: '' })),
      ...(['vanish', 'finish', 'reset'] as const).map((way) => ({
        framing,
        way,
        expect: expecting,
      })),
    ]);
    const rounds = Array.from({ length: 3 }, () => uploads).flat();
    for (const { framing, way, expect } of rounds) {
      // A new one each time: the service has to ask the database for it.
      const { raw } = await service.member(account.id, 'owner');
      const connection = await open(service);
      connection.write(head(raw, expect + framing));
      if (expect !== '') assert.equal((await connection.answer())?.status, 100);
      connection.write(framing === inChunks ? '9\r\n{' : '{');
      connection[way]();
      if (way === 'finish') await connection.end();
    }
    await until('every upload came to an end', async () => {
      return (await postsAnswered(service)) - answered >= rounds.length;
    });
    await until('every socket is gone', () => openSockets() <= sockets);
    await assertNothingMade(as);
  });

  test('Part 8 Sizes, Part 7: ten gigabytes announced are 413, told to a sender who goes on sending', async () => {
    await newAccount();
    const connection = await open(service);
    connection.write(head(key, ofLength(10_000_000_000)));
    const stop = pour(connection, Buffer.alloc(64 * 1024, 0x20));
    const answer = await connection.answer();
    assert.equal(answer?.status, 413);
    verdict.hold(answer, { method: 'POST', madeUpIds: [] });
    assert.match(answer.body.toString(), /4096/);
    await connection.end();
    stop();
    // What the two kernels had room for, and no more.
    assert.ok(
      connection.socket.bytesWritten < 100_000_000,
      `${connection.socket.bytesWritten} sent`,
    );
    connection.vanish();
    await assertNothingMade(as);
  });

  test('Part 8 Sizes, Part 7: chunks past the limit are 413, told to a sender who goes on sending', async () => {
    await newAccount();
    const connection = await open(service);
    connection.write(head(key, inChunks));
    const stop = pour(connection, `1000\r\n${' '.repeat(0x1000)}\r\n`);
    const answer = await connection.answer();
    assert.equal(answer?.status, 413);
    verdict.hold(answer, { method: 'POST', madeUpIds: [] });
    await connection.end();
    stop();
    assert.ok(
      connection.socket.bytesWritten < 100_000_000,
      `${connection.socket.bytesWritten} sent`,
    );
    connection.vanish();
    await assertNothingMade(as);
  });

  test('Part 7: an ordinary client reads the refusal of an upload that it has not finished', async () => {
    await newAccount();
    for (const [credential, status] of [
      [key, 413],
      ['com_nothing', 401],
    ] as const) {
      assert.equal(await statusOfEndlessUpload(service, credential), status);
    }
  });

  test('Part 8 Sizes: with Expect, a length past the limit is 413 and no 100', async () => {
    await newAccount();
    const connection = await open(service);
    connection.write(head(key, expecting + ofLength(4_097)));
    await assertRefused(connection, 413);
    const unknown = await open(service);
    unknown.write(head(undefined, expecting + ofLength(20)));
    await assertRefused(unknown, 401);
  });

  test('Part 7: with Expect, a length within the limit is 100, then the answer to what was sent', async () => {
    await newAccount();
    const connection = await open(service);
    const body = JSON.stringify({ name: 'awaited' });
    connection.write(head(key, expecting + ofLength(body.length)));
    assert.equal((await connection.answer())?.status, 100);
    await assertNothingMade(as);
    connection.write(body);
    const answer = await connection.answer();
    assert.equal(answer?.status, 200);
    assert.equal(JSON.parse(answer.body.toString()).name, 'awaited');
    // The connection stays good for the next one.
    connection.write(`GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    assert.equal((await connection.answer())?.status, 200);
    connection.vanish();
  });

  test('Part 7: a sender who has said everything and closed that half is still answered', async () => {
    await newAccount();
    const body = JSON.stringify({ name: 'half' });
    for (const [sent, status] of [
      [head(key, ofLength(body.length)) + body, 200],
      [head(key, inChunks) + `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`, 400],
      [head(key, ofLength(body.length + 1)) + body, 400],
      [head(key, inChunks) + '5\r\n{"nam\r\n', 400],
      [head(key, ofLength(0)).slice(0, -3), 400],
    ] as const) {
      const connection = await open(service);
      connection.write(sent);
      connection.finish();
      const answer = await connection.answer();
      assert.equal(answer?.status, status, sent);
      verdict.hold(answer, { method: 'POST', madeUpIds: [] });
      assert.equal((await connection.end()).length, 0, 'said more after its last answer');
    }
    const names = (await as.get('/workspaces')).body.map(({ name }: { name: string }) => name);
    assert.deepEqual(names, ['half'], 'the second of the name was refused');
  });

  test('Part 7: connections that say nothing, or only half of something, keep nobody from being served', async () => {
    await newAccount();
    const silent = await Promise.all(Array.from({ length: 200 }, () => open(service)));
    const halves = ['', 'POST /api', head(key, ofLength(40)).slice(0, -2), head(key, ofLength(40))];
    silent.forEach((connection, n) => connection.write(halves[n % halves.length] as string));
    assert.equal((await as.post('/workspaces', { name: 'served' })).status, 200);
    const stopping = await startService({ drainMs: 100 });
    const held = await Promise.all(halves.map(() => open(stopping)));
    held.forEach((connection, n) => connection.write(halves[n] as string));
    await stopping.stop();
    for (const connection of held) await connection.end();
    for (const connection of silent) connection.vanish();
  });
});

/** Writes the same bytes over and over as fast as they are taken, until told to stop. */
function pour(connection: RawConnection, bytes: Buffer | string): () => void {
  const pump = () => {
    while (connection.write(bytes));
  };
  connection.socket.on('drain', pump);
  pump();
  return () => connection.socket.off('drain', pump);
}

function statusOfEndlessUpload({ baseUrl }: TestService, key: string): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const headers = { authorization: `Bearer ${key}`, 'content-length': 10_000_000_000 };
  const options = { method: 'POST', agent: false, headers };
  const request = httpRequest(`${baseUrl}/workspaces`, options, (response) => {
    response.resume().on('end', () => {
      resolve(response.statusCode);
      request.destroy();
    });
  });
  const block = Buffer.alloc(64 * 1024, 0x20);
  const pump = () => {
    while (!request.destroyed && request.write(block));
  };
  request.on('drain', pump).on('error', reject);
  pump();
  return promise;
}

/** Requests that came to an end, whoever was there to read the answer. */
async function postsAnswered(service: TestService): Promise<number> {
  const { text } = await service.as().get(`${service.origin}/metrics`);
  const counts = text.matchAll(/^cubicle_http_answers_total\{[^}]*method="POST"[^}]*\} (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Of this process, which holds both ends of every connection here. */
function openSockets(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length;
}
