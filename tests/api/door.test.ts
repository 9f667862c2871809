import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, suite, test } from 'node:test';
import type { Route } from '../../packages/contract/route.ts';
import { routes } from '../../packages/contract/routes.ts';
import {
  assertMetered,
  assertRefused,
  assertRequestId,
  assertUnmetered,
} from '../support/assertions.ts';
import { startService, type TestService } from '../support/service.ts';

suite('the door', () => {
  let service: TestService;
  before(async () => {
    service = await startService();
  });
  after(() => service.stop());

  const filled = (route: Route) => route.path.replaceAll(/\{\w+\}/g, 'wsp-000000000000');
  const unknownKey = `com_${'0'.repeat(48)}`;

  test('Part 1 1, Part 5 1, Part 5 6: 401 missing, invalid and revoked with their challenges, free of charge', async () => {
    const { as, account, owner, key } = await service.account();
    const missing = await service.as().get('/workspaces');
    assertRefused(missing, 401, 'missing');
    assert.equal(missing.headers['www-authenticate'], 'Bearer');
    const invalid = [
      'Bearer',
      'Bearer ',
      'Bearer x',
      `Bearer ${unknownKey}`,
      `Bearer ${key.raw}0`,
      key.raw,
      '',
      'Basic abc',
      `Bearer ${key.raw.toUpperCase()}`,
      `Token ${key.raw}`,
      `Bearer ${key.raw} x`,
      `Bearer eyJhbGciOiJIUzI1NiJ9.e30.x`,
    ];
    for (const authorization of invalid) {
      const answer = await service.as().get('/workspaces', { headers: { authorization } });
      assertRefused(answer, 401, 'invalid');
      assert.equal(answer.headers['www-authenticate'], 'Bearer error=invalid_token');
      assertUnmetered(answer);
    }
    const made = await service.operator.createKey({
      account: account.id,
      email: owner,
      manageKeys: false,
    });
    await service.operator.revokeKey(made.id);
    const revoked = await service.as(made.raw).get('/workspaces');
    assertRefused(revoked, 401, 'revoked');
    assert.equal(revoked.headers['www-authenticate'], 'Bearer error=invalid_token');
    for (const answer of [missing, revoked]) assertUnmetered(answer);
    const lower = await as.get('/whoami', { headers: { authorization: `bearer  ${key.raw}` } });
    assert.equal(lower.status, 200, 'the scheme is case-insensitive');
  });

  test('Part 5 5: a token that is no API key is invalid on every route, before path and method are looked at', async () => {
    const stranger = service.as('mcp_access_token');
    for (const path of ['/whoami', '/no/such/path', '/workspaces/%2e%2e', '']) {
      assertRefused(await stranger.get(path), 401, 'invalid');
    }
    assertRefused(await stranger.send('PUT', '/workspaces'), 401, 'invalid');
  });

  test('Part 1 2: the request id is ours and new each time, whatever the caller sends', async () => {
    const { as } = await service.account();
    const theirs = '11111111-2222-4333-8444-555555555555';
    const seen = new Set<string>();
    for (const path of ['/whoami', '/nope', '/workspaces/wsp-000000000000', '/account']) {
      const answer = await as.get(path, { headers: { 'x-request-id': theirs } });
      const id = assertRequestId(answer);
      assert.notEqual(id, theirs);
      if (answer.status >= 400) assert.equal(answer.body.request_id, id);
      seen.add(id);
    }
    assert.equal(seen.size, 4);
    assertRequestId(await service.as().options('/workspaces'));
  });

  test('Part 1 3: HEAD is the GET without its body: same status, same headers, Range ignored', async () => {
    const { as } = await service.account();
    const { id } = (await as.post('/workspaces', { name: 'here' })).body;
    const paths = [
      '/account',
      '/whoami',
      '/workspaces',
      '/api-keys',
      `/workspaces/${id}`,
      `/workspaces/${id}/members`,
      '/workspaces/wsp-000000000000',
      '/nope',
    ];
    const varying = new Set(['x-request-id', 'date', 'ratelimit-remaining', 'ratelimit-reset']);
    for (const path of paths) {
      const get = await as.get(path);
      const head = await as.head(path, { headers: { range: 'bytes=0-1' } });
      assert.equal(head.status, get.status);
      assert.equal(head.text, '');
      assertRequestId(head);
      const fixed = (headers: typeof get.headers) =>
        Object.entries(headers).filter(([name]) => !varying.has(name) && name !== 'content-length');
      assert.deepEqual(fixed(head.headers), fixed(get.headers), path);
      if (path !== '/account' && path !== '/whoami' && path !== '/api-keys') {
        assert.equal(head.headers['content-length'], get.headers['content-length'], path);
      }
    }
    assertRefusedHead(await service.as().head('/workspaces'), 401);
    const one = await service.account('none');
    const had = assertMetered(await one.as.get('/whoami')).remaining;
    const has = assertMetered(await one.as.head('/account')).remaining;
    assert.ok(had - has >= 9, 'HEAD costs what the GET costs');
  });

  function assertRefusedHead(
    answer: Awaited<ReturnType<ReturnType<TestService['as']>['head']>>,
    status: number,
  ) {
    assert.equal(answer.status, status);
    assert.equal(answer.text, '');
    assertRequestId(answer);
  }

  test('Part 1 4: OPTIONS is public and unmetered, needs no resource, and lists the methods in stable order', async () => {
    const order = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
    for (const [path, group] of Map.groupBy(Object.values<Route>(routes), filled)) {
      const methods = group.flatMap(({ method }) =>
        method === 'GET' ? ['GET', 'HEAD'] : [method],
      );
      const expected = order
        .filter((method) => [...methods, 'OPTIONS'].includes(method))
        .join(', ');
      for (const key of [undefined, 'rubbish', unknownKey]) {
        const answer = await service.as(key).options(path);
        assert.equal(answer.status, 204);
        assert.equal(answer.headers['allow'], expected);
        assert.equal(answer.text, '');
        assertUnmetered(answer);
        assertRequestId(answer);
      }
    }
    assert.equal(
      (await service.as().options('/workspaces')).headers['allow'],
      'GET, HEAD, POST, OPTIONS',
    );
  });

  test('Part 1 4: OPTIONS on an unknown or unsafe path is 404', async () => {
    const paths = [
      '/nope',
      '/workspaces/x/y',
      '',
      '/workspaces/..',
      '/workspaces/%2e%2e',
      '/workspaces//members',
      '/workspaces/a%2Fb',
      '/workspaces/%00',
      '/workspaces/%zz',
      '/workspaces/a%5Cb',
      '/Workspaces',
    ];
    for (const path of paths) {
      const answer = await service.as().options(path);
      assertRefused(answer, 404);
      assertUnmetered(answer);
    }
    assertRefused(await service.as().options(`${service.origin}//api/v1/workspaces`), 404);
  });

  test('Part 1 5: an unsupported method is 405 with Allow after authority, and costs 1', async () => {
    const { as } = await service.account();
    for (const [path, group] of Map.groupBy(Object.values<Route>(routes), filled)) {
      const allow = (await as.options(path)).headers['allow'] ?? '';
      for (const method of [
        'GET',
        'POST',
        'PUT',
        'PATCH',
        'DELETE',
        'PROPFIND',
        'TRACE',
        'M-SEARCH',
      ]) {
        if (group.some((route) => route.method === method)) continue;
        const answer = await as.send(method, path);
        assertRefused(answer, 405);
        assert.equal(answer.headers['allow'], allow);
        assertMetered(answer);
        assertRefused(await service.as().send(method, path), 401, 'missing');
      }
    }
  });

  test('Part 1 6: a trailing slash is redirected with 308 for every method, without a request id', async () => {
    const { as } = await service.account();
    for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS', 'HEAD']) {
      for (const who of [as, service.as()]) {
        const answer = await who.send(method, '/workspaces/?a=1&b=/');
        assert.equal(answer.status, 308);
        assert.equal(answer.headers['location'], '/api/v1/workspaces?a=1&b=/');
        assert.equal(answer.headers['x-request-id'], undefined);
        assert.equal(answer.text, '');
        assertUnmetered(answer);
      }
    }
    for (const [path, location] of [
      ['/workspaces///', '/api/v1/workspaces'],
      ['/', '/api/v1'],
      ['/no/such/', '/api/v1/no/such'],
    ] as const) {
      assert.equal((await as.get(path)).headers['location'], location);
    }
    assert.equal((await as.get(`${service.origin}/docs/`)).headers['location'], '/docs');
    const outside = await as.get(`${service.origin}//example.com/`);
    assert.equal(outside.headers['location'], undefined, 'no redirect leaves this site');
    assert.equal(outside.status, 404);
  });

  test('Part 1 7: Idempotency-Key is neither checked nor remembered', async () => {
    const { as } = await service.account();
    for (const value of ['same', 'x'.repeat(300), 'with space', '']) {
      const headers = { 'idempotency-key': value };
      for (let n = 0; n < 2; n += 1) {
        const answer = await as.send('POST', '/api-keys', { json: {}, headers });
        assert.equal(answer.status, 201);
        assert.equal(answer.headers['idempotent-replayed'], undefined);
      }
      assert.equal((await as.send('GET', '/whoami', { headers })).status, 200);
    }
    assert.equal((await as.get('/api-keys')).body.length, 9);
    const headers = { 'idempotency-key': 'w' };
    assert.equal(
      (await as.send('POST', '/workspaces', { json: { name: 'w' }, headers })).status,
      200,
    );
    assertRefused(await as.send('POST', '/workspaces', { json: { name: 'w' }, headers }), 400);
  });

  test('Part 7, Part 2 Error: unknown paths are 404 at cost 1, metered, in the error shape', async () => {
    const { as } = await service.account();
    for (const path of [
      '/nope',
      '/workspaces/x/y/z',
      '',
      '/workspaces/%2e%2e/members',
      '/workspaces/%ff',
      '/__proto__',
    ]) {
      const answer = await as.get(path);
      assertRefused(answer, 404);
      assertMetered(answer);
    }
  });

  test('Part 7: bad bodies get a clear 4xx and nothing is done', async () => {
    const { as } = await service.account();
    const raw = async (body: string | Buffer, headers: Record<string, string> = {}) =>
      as.send('POST', '/workspaces', { raw: body, headers });
    const bad: [string | Buffer, Record<string, string>?][] = [
      [''],
      ['{'],
      ['{"name":"a"'],
      ["{'name':'a'}"],
      ['name=a'],
      ['{"name":"a"} x'],
      ['{"name":}'],
      ['\u0000'],
      ['['.repeat(2000)],
      [Buffer.from([0x7b, 0xff, 0xfe, 0x7d])],
      [Buffer.from('{"name":"\xe9"}', 'latin1')],
      ['{"name":"a"}', { 'content-type': 'application/json; charset=utf-16' }],
      ['{"name":"a"}', { 'content-type': 'application/json; charset="latin1"' }],
      ['{"name":"a"}', { 'content-encoding': 'gzip' }],
      ['{"name":"\\ud800"}'],
      ['{"name":"\u0001"}'],
      ['1e999'],
    ];
    for (const [body, headers] of bad) {
      assertRefused(await raw(body, headers), 400);
    }
    assert.deepEqual((await as.get('/workspaces')).body, []);
    for (const headers of [
      { 'content-type': 'application/json; charset=UTF-8' },
      { 'content-type': 'text/plain' },
      {},
      { 'content-encoding': 'identity' },
    ]) {
      assert.equal(
        (
          await raw(
            `\ufeff{"name":"${Object.values(headers)[0] ?? 'x'}"}`.replaceAll(
              '"application/json; charset=UTF-8"',
              '"a"',
            ),
            headers,
          )
        ).status,
        200,
      );
    }
  });

  test('Part 8 Sizes: a JSON body may have 1 MiB where no other cap is named', async () => {
    const { as } = await service.account();
    const padded = (size: number) => `{${' '.repeat(size - 2)}}`;
    assert.equal((await as.send('POST', '/api-keys', { raw: padded(1_048_576) })).status, 201);
    const answer = await as.send('POST', '/api-keys', { raw: padded(1_048_577) });
    assertRefused(answer, 413);
    assert.match(answer.body.error, /1 MiB \(1048576 bytes\)/);
  });

  test('Part 9 1: the API lives under /api/v1 only', async () => {
    const { key } = await service.account();
    for (const path of ['/whoami', '/api/v2/whoami', '/api/whoami', '/api/v1whoami']) {
      assertRefused(await service.as(key.raw).get(service.origin + path), 404);
    }
  });

  test('Part 1 2: the pages beside the API answer without a key and carry the request id', async () => {
    for (const path of ['/healthz', '/metrics', '/openapi.json', '/docs']) {
      const answer = await service.as().get(service.origin + path);
      assert.equal(answer.status, 200, path);
      assertRequestId(answer);
      assert.equal((await service.as().head(service.origin + path)).text, '');
      const refused = await service.as().post(service.origin + path, {});
      assertRefused(refused, 405);
      assert.equal(refused.headers['allow'], 'GET, HEAD, OPTIONS');
    }
    assert.equal((await service.as().get(`${service.origin}/`)).headers['location'], '/docs');
  });

  test('Part 7: bytes that are no request get an error in the same shape and a closed connection', async () => {
    const { port } = new URL(service.origin);
    const say = (text: string) =>
      new Promise<string>((resolve, reject) => {
        let answer = '';
        const socket = connect(Number(port), '127.0.0.1', () => socket.write(text));
        socket.setEncoding('utf8').on('data', (chunk) => (answer += chunk));
        socket.on('close', () => resolve(answer)).on('error', reject);
      });
    for (const [text, status] of [
      ['rubbish\r\n\r\n', 400],
      ['GET / HTTP/1.1\r\nHost: x\r\nBad Header: 1\r\n\r\n', 400],
      [`GET / HTTP/1.1\r\nHost: x\r\nA: ${'x'.repeat(17_000)}\r\n\r\n`, 431],
      ['CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n', 400],
      ['FOO / HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ] as const) {
      const answer = await say(text);
      assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `), text.slice(0, 40));
      const [head, body] = answer.split('\r\n\r\n') as [string, string];
      const id = /x-request-id: (\S+)/i.exec(head)?.[1];
      assert.equal(JSON.parse(body).request_id, id);
    }
  });
});
