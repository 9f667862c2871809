// Attacks one at a time, each the smallest that would work on a server that reads or answers carelessly.

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { basePath } from '../../packages/contract/routes.ts';
import type { Client } from '../support/client.ts';
import { Ground, type ServiceProcess } from '../support/process.ts';
import { startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { type RawAnswer, RawConnection } from './raw-connection.ts';
import { Verdict } from './verdict.ts';

suite('single attacks', { timeout: 300_000 }, () => {
  const verdict = new Verdict();
  let service: TestService;
  let ground: Ground;
  let target: ServiceProcess;
  let as: Client;
  let key: string;
  before(async () => {
    service = await startService();
    ground = new Ground();
    target = await ground.start(await ground.folder(), { DATABASE_URL: service.databaseUrl });
    const made = await service.account();
    as = made.as;
    key = made.key.raw;
  });
  after(async () => {
    await ground.clear();
    await service.stop();
  });

  const open = () => RawConnection.open(Number(new URL(target.baseUrl).port));
  const get = (path: string, ...lines: string[]) =>
    [`GET ${path} HTTP/1.1`, 'Host: localhost', ...lines, '', ''].join('\r\n');
  const bearer = () => `Authorization: Bearer ${key}`;
  const create = (name: string, ...lines: string[]) => {
    const body = JSON.stringify({ name });
    const head = [`POST ${basePath}/workspaces HTTP/1.1`, 'Host: localhost', bearer(), ...lines];
    return [...head, `Content-Length: ${body.length}`, '', body].join('\r\n');
  };
  const names = async () =>
    (await as.get('/workspaces')).body.map(({ name }: { name: string }) => name);

  /** How often the description of the API was answered, whether anybody has read it or not. */
  const descriptions = async () => {
    const { text } = await target.as().get(`${target.origin}/metrics`);
    return Number(
      /^cubicle_http_answers_total\{route="openapi.json".* (\d+)$/m.exec(text)?.[1] ?? 0,
    );
  };

  /** Sends it all at once, says no more, and reads every answer there is. */
  async function exchange(...parts: string[]): Promise<RawAnswer[]> {
    const connection = await open();
    connection.write(parts.join(''));
    connection.finish();
    const answers: RawAnswer[] = [];
    for (;;) {
      const answer = await connection.answer();
      if (answer === undefined) break;
      verdict.hold(answer, { method: 'GET', madeUpIds: [] });
      answers.push(answer);
    }
    connection.vanish();
    return answers;
  }
  const statuses = (answers: readonly RawAnswer[]) => answers.map(({ status }) => status);

  test('Part 1 6: the redirect of a trailing slash never leads to another site', async () => {
    for (const path of [
      '/\\evil.example/',
      '/\\/evil.example/',
      '//evil.example/',
      '/.//x/',
      '/a\\b/',
    ]) {
      const [answer] = await exchange(get(path));
      // hold() has looked at where it leads.
      assert.ok(answer?.status === 308 || answer?.status === 401, `${path} is ${answer?.status}`);
    }
  });

  test('Part 1 2: answers to a slow reader arrive whole, whatever is sent behind the last one', async () => {
    const connection = await open();
    connection.socket.pause();
    const half = 'x'.repeat(50_000);
    const earlier = await descriptions();
    connection.write(get('/openapi.json').repeat(3));
    connection.write(get('/openapi.json', `Content-Length: ${2 * half.length}`) + half);
    // The upload is answered before it is complete, so it is the last to be answered.
    await until('all four are answered', async () => (await descriptions()) === earlier + 4);
    connection.write(half + get('/openapi.json').repeat(10_000));
    await setTimeout(300);
    connection.socket.resume();
    const answers: RawAnswer[] = [];
    for (;;) {
      const answer = await connection.answer();
      if (answer === undefined) break;
      answers.push(answer);
      if (answer.all('connection').includes('close')) break;
    }
    connection.vanish();
    assert.deepEqual(statuses(answers), [200, 200, 200, 200]);
  });

  test('Part 1 2, Part 7: an expectation that nobody knows gets an answer of the contract', async () => {
    const [answer, ...more] = await exchange(get(`${basePath}/whoami`, bearer(), 'Expect: 200-ok'));
    assert.equal(answer?.status, 200);
    assert.deepEqual(more, []);
  });

  test('Part 7: what follows a request never takes its answer', async () => {
    const rest = {
      noise: 'GARBAGE\r\n\r\n',
      'a tunnel': 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n',
      'too long a header': get('/healthz', `X-Long: ${'x'.repeat(20_000)}`),
      'half a request': 'GET /hea',
      'a bad body': `${create('never').replace(/Content-Length.*/s, 'Transfer-Encoding: chunked')}\r\n\r\nzz\r\n`,
    };
    for (const [what, bytes] of Object.entries(rest)) {
      const [answer, other, ...more] = await exchange(create(`before ${what}`), bytes);
      assert.equal(answer?.status, 200, `the creation before ${what}`);
      assert.ok(other === undefined || other.status >= 400, what);
      assert.deepEqual(more, []);
    }
    assert.deepEqual(
      await names(),
      Object.keys(rest).map((what) => `before ${what}`),
    );
  });

  test('Part 7: what follows an answer that ends the connection is not obeyed', async () => {
    const known = await names();
    const unread = `Content-Length: 100000\r\n\r\n${' '.repeat(100_000)}`;
    for (const first of [
      get('/healthz', 'Connection: close'),
      get('/healthz').replace('1.1', '1.0'),
      get(`${basePath}/whoami`, 'Expect: 100-continue'),
      create('too long').replace(/Content-Length.*/s, unread),
    ]) {
      const [answer, ...more] = await exchange(first, create('unheard'));
      assert.ok(answer);
      if (answer.all('connection').includes('close'))
        assert.deepEqual(more, [], first.slice(0, 90));
      else assert.equal(more.length, 1, first.slice(0, 90));
      // Answered or not obeyed, one of the two.
      const made = (await names()).length - known.length;
      assert.equal(made, more.filter(({ status }) => status === 200).length, first.slice(0, 90));
      if (made > 0) known.push('unheard');
    }
  });

  test('Part 7: what follows a wish to upgrade is answered, or told that it will not be', async () => {
    const wish = ['Connection: Upgrade', 'Upgrade: websocket'];
    const connection = await open();
    connection.write(get('/healthz', ...wish) + get('/docs'));
    const answer = await connection.answer();
    assert.equal(answer?.status, 200);
    if (answer.all('connection').includes('close')) await connection.end();
    else assert.equal((await connection.answer())?.status, 200);
    connection.vanish();
  });

  test('Part 7: a request that is refused and cut off is answered once', async () => {
    const cut = `POST ${basePath}/workspaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40\r\n\r\n{"na`;
    const [answer, ...more] = await exchange(cut);
    assert.ok(answer?.status === 401 || answer?.status === 400);
    assert.deepEqual(statuses(more), []);
  });

  test('Part 7: many requests in one write are answered in their order', async () => {
    const paths = ['/healthz', '/docs', `${basePath}/whoami`, '/nowhere', `${basePath}/account`];
    const answers = await exchange(...paths.map((path) => get(path, bearer())));
    assert.deepEqual(statuses(answers), [200, 200, 200, 404, 200]);
  });

  test('Part 2 Error: the sentence about unknown fields stays a sentence', async () => {
    const fields = Array.from({ length: 50_000 }, (_, n) => `"field ${n}":0`);
    const answer = await as.send('POST', '/api-keys', { raw: `{${fields.join()}}` });
    assert.equal(answer.status, 400);
    assert.ok(answer.text.length < 2_000, `${answer.text.length} characters`);
  });

  test('Part 7: a sender who resets the connection at any moment ends nothing but that', async () => {
    const beginnings = [
      'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n',
      `${get('/healthz')}CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n`,
      'GARBAGE\r\n\r\n',
      get('/docs').repeat(20),
      get(`${basePath}/whoami`, bearer()),
      create('reset', 'Expect: 100-continue'),
    ];
    for (let round = 0; round < 50; round += 1) {
      await Promise.all(
        beginnings.map(async (bytes) => {
          const connection = await open();
          connection.write(bytes);
          connection.reset();
        }),
      );
    }
    assert.equal((await target.health()).status, 200);
    assert.equal(target.stderr, '');
  });
});
