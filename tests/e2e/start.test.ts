import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile, readdir, stat } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import type { Route } from '../../packages/contract/route.ts';
import { basePath, routes } from '../../packages/contract/routes.ts';
import { assertRequestId } from '../support/assertions.ts';
import { type Environment, Ground, root, type ServiceProcess } from '../support/process.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);

suite('the first start', () => {
  const ground = new Ground();
  let service: ServiceProcess;
  before(async () => {
    service = await ground.start(await ground.folder());
  });
  after(() => ground.clear());

  test('prints the base URL, the key on one line, and a curl line', () => {
    const lines = service.stdout.split('\n').map((line) => line.trim());
    const { base_url, key } = service.firstKey();
    assert.match(base_url, new RegExp(`^http://127\\.0\\.0\\.1:\\d+${basePath}$`));
    assert.ok(lines.includes(`Cubicle is ready at ${base_url}`));
    assert.equal(lines.filter((line) => line === key).length, 1);
    assert.equal(lines.filter((line) => line.startsWith('curl ')).length, 1);
    assert.equal(service.stderr, '');
  });

  test('the printed curl line works as it stands', async () => {
    const line = /^ *curl .*$/m.exec(service.stdout)?.[0] ?? 'false';
    const { stdout } = await run('sh', ['-c', line], { env: { PATH: process.env['PATH'] ?? '' } });
    assert.equal(JSON.parse(stdout).account.id, service.firstKey().account_id);
  });

  test('keeps base_url, account_id and key where only their owner reads them', async () => {
    const path = join(service.dataDir, 'first-key.json');
    assert.deepEqual(Object.keys(service.firstKey()), ['base_url', 'account_id', 'key']);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    const drafts = (await readdir(service.dataDir)).filter((name) => name.includes('draft'));
    assert.deepEqual(drafts, []);
  });

  test('the first account has the plan swarm, and its key belongs to the owner and manages keys', async () => {
    const { key, account_id } = service.firstKey();
    const me = (await service.as(key).get('/whoami')).body;
    assert.equal(me.account.id, account_id);
    assert.equal(me.account.plan, 'swarm');
    assert.equal(me.role, 'owner');
    assert.equal(me.workspace, null);
    assert.equal(me.key.manage_keys, true);
    assert.equal((await service.as(key).get('/account')).body.plan.id, 'swarm');
    assert.equal((await service.as(key).post('/api-keys', {})).status, 201);
  });

  test('Part 1 2: health, metrics, description and reference carry a request id and need no key', async () => {
    const page = (path: string) => service.as().get(service.origin + path);
    const [health, metrics, openapi, docs] = await Promise.all(
      ['/healthz', '/metrics', '/openapi.json', '/docs'].map(page),
    );
    for (const answer of [health, metrics, openapi, docs]) {
      assert.equal(answer?.status, 200);
      assertRequestId(answer);
    }
    assert.deepEqual(health?.body, { ok: true });
    assert.match(metrics?.headers['content-type'] ?? '', /^text\/plain; version=0\.0\.4/);
    assert.match(metrics?.text ?? '', /^# TYPE cubicle_http_answers_total counter$/m);
    assert.match(metrics?.text ?? '', /^cubicle_http_answers_total\{.*\} \d+$/m);
    assert.equal(openapi?.text, await readFile(join(root, 'docs/openapi.json'), 'utf8'));
  });

  test('the reference shows every path and loads nothing from elsewhere', async () => {
    const { headers, text } = await service.as().get(`${service.origin}/docs`);
    assert.match(headers['content-type'] ?? '', /^text\/html/);
    for (const { method, path } of Object.values<Route>(routes)) {
      assert.match(text, new RegExp(`>${method}</b> <code>${path}</code>`), `${method} ${path}`);
    }
    assert.doesNotMatch(text, /\b(?:src|href|action|srcset)\s*=\s*["']?\s*(?:https?:)?\/\//i);
    assert.doesNotMatch(text, /@import|url\(\s*["']?\s*(?:https?:)?\/\//i);
  });

  test('another service beside it has its own data; on the same data it ends with a sentence', async () => {
    const beside = await ground.start(await ground.folder());
    assert.notEqual(beside.firstKey().account_id, service.firstKey().account_id);
    assert.equal((await beside.as(service.firstKey().key).get('/whoami')).status, 401);
    await beside.stop();

    const kept = service.firstKey();
    const { code, stdout, stderr } = await ground.launch(service.dataDir).ended;
    assert.equal(code, 1);
    assert.match(stderr, /^Another Cubicle service is using the data folder .+\.\n$/);
    assert.doesNotMatch(stdout, /ready|com_/);
    assert.deepEqual(service.firstKey(), kept);
    assert.equal((await service.health()).status, 200);
    assert.equal((await service.as(kept.key).post('/workspaces', { name: 'still' })).status, 200);
  });

  test('the next start keeps key and data, shows the key no more, and base_url follows the port', async () => {
    const { key, account_id } = service.firstKey();
    await service.as(key).post('/workspaces', { name: 'kept' });
    await service.stop();
    const port = await freePort();
    service = await ground.start(service.dataDir, { CUBICLE_PORT: `${port}` });
    assert.doesNotMatch(service.stdout + service.stderr, /com_|curl/);
    assert.match(service.stdout, /^The first API key is in .*first-key\.json\.$/m);
    assert.equal(service.baseUrl, `http://127.0.0.1:${port}${basePath}`);
    assert.deepEqual(service.firstKey(), { base_url: service.baseUrl, account_id, key });
    assert.equal((await stat(join(service.dataDir, 'first-key.json'))).mode & 0o777, 0o600);
    const { body } = await service.as(key).get('/workspaces');
    assert.ok(body.some(({ name }: { name: string }) => name === 'kept'));
  });
});

suite('a start that cannot be', () => {
  const secret = 'hunter2-the-password';
  const port = /^CUBICLE_PORT must be a port from 0 to 65535\b.*\.$/;
  const publicUrl = /^CUBICLE_PUBLIC_URL must be an http or https address without a path\b.*\.$/;
  const database = /^DATABASE_URL must begin with postgres:\/\/ or postgresql:\/\/\.$/;
  const log = /^CUBICLE_LOG must be one of silent, error, warn, info, debug, not "loud"\.$/;

  async function assertTold(ground: Ground, settings: Environment, sentences: RegExp[]) {
    const folder = await ground.folder();
    const { code, stdout, stderr } = await ground.launch(folder, settings).ended;
    const lines = stderr.trimEnd().split('\n');
    assert.equal(lines.length, sentences.length, stderr);
    lines.forEach((line, i) => assert.match(line, sentences[i] as RegExp));
    assert.equal(code, 1);
    assert.equal(stdout, '');
    assert.doesNotMatch(stderr, new RegExp(secret));
    assert.deepEqual(await readdir(folder), [], 'nothing was made');
  }

  for (const [settings, ...sentences] of [
    [{ CUBICLE_PORT: '99999' }, port],
    [{ CUBICLE_PORT: 'abc' }, port],
    [{ CUBICLE_PORT: '-1' }, port],
    [{ CUBICLE_PUBLIC_URL: 'ftp://x' }, publicUrl],
    [{ CUBICLE_PUBLIC_URL: 'https://x.example.com/api' }, publicUrl],
    [{ CUBICLE_PUBLIC_URL: 'not a url' }, publicUrl],
    [{ DATABASE_URL: `mysql://root:${secret}@db/cubicle` }, database],
    [{ CUBICLE_LOG: 'loud' }, log],
    [
      {
        CUBICLE_PORT: 'abc',
        CUBICLE_PUBLIC_URL: 'ftp://x',
        DATABASE_URL: secret,
        CUBICLE_LOG: 'loud',
      },
      port,
      publicUrl,
      database,
      log,
    ],
  ] as [Environment, ...RegExp[]][]) {
    test(`tells each wrong setting in a sentence: ${JSON.stringify(settings)}`, async (t) => {
      await assertTold(Ground.of(t), settings, sentences);
    });
  }

  test('a taken port is told in a sentence', async (t) => {
    const holder = createServer().listen(0, '127.0.0.1');
    t.after(() => holder.close());
    await once(holder, 'listening');
    const taken = `${(holder.address() as AddressInfo).port}`;
    await assertTold(Ground.of(t), { CUBICLE_PORT: taken }, [/^The port is taken; .*CUBICLE_PORT/]);
  });

  for (const address of ['127.0.0.1:1', 'localhost:1', 'no-such-host.invalid', '[broken']) {
    test(`a database out of reach is told in a sentence without its password: ${address}`, async (t) => {
      const DATABASE_URL = `postgres://cubicle:${secret}@${address}/cubicle`;
      await assertTold(Ground.of(t), { DATABASE_URL }, [/\bdatabase\b|DATABASE_URL/i]);
    });
  }
});

/** Free a moment ago, and none that the system gives to whoever asks for any. */
async function freePort(): Promise<number> {
  const given = await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8');
  const [least, first] = [1_024, Number.parseInt(given, 10)];
  return until('a port is free', async () => {
    const port = least + Math.floor(Math.random() * (first - least));
    const holder = createServer().listen(port, '127.0.0.1');
    await once(holder, 'listening');
    holder.close();
    await once(holder, 'close');
    return port;
  });
}
