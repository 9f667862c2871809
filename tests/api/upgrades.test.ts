import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { sql } from '../../packages/server/db/database.ts';
import { assertRequestId } from '../support/assertions.ts';
import { greet, messages } from '../support/rfb.ts';
import { startService, type TestService } from '../support/service.ts';
import { type SocketRefusal, TestSocket } from '../support/socket.ts';
import { until } from '../support/until.ts';
import { rawUpdate, serverCutText, VncServer } from '../support/vnc-server.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

type Account = Awaited<ReturnType<TestService['account']>>;

suite('upgrades', { timeout: 600_000 }, () => {
  let service: TestService;
  let account: Account;
  before(async () => {
    service = await startService({ simulated: true });
    account = await service.account();
  });
  after(() => service.stop());

  async function given(start = true, of = account): Promise<string> {
    const owner = { account_id: of.account.id, workspace_id: null };
    return service.host.give(service.database, { ...owner, start });
  }

  /** A computer whose desktop is up. */
  async function desktop(of = account): Promise<{ id: string; vnc: VncServer }> {
    const id = await given(true, of);
    const vnc = await VncServer.in(await service.host.agentOf(id));
    await until('the desktop is up', async () => (await service.host.near.computer(id))?.ready);
    return { id, vnc };
  }

  async function record(id: string, as = account.as) {
    const { body } = await as.get(`/computers/${id}`);
    return body;
  }

  function told({ status, body, headers }: SocketRefusal) {
    const { request_id: requestId, ...rest } = body;
    assert.equal(headers['x-request-id'], requestId);
    assert.equal(headers['connection'], 'close');
    return { status, ...rest };
  }

  test('wire-guest 10, Part 5 8: RFB passes both ways for whoever controls', async () => {
    const { id, vnc } = await desktop();
    const socket = await TestSocket.open((await record(id)).vnc.url);
    assert.deepEqual(await greet(socket), { width: 4, height: 2, name: 'simulated' });
    const sent = [messages.key(true, 0x61), messages.cutText('words'), messages.pointer(1, 2, 3)];
    for (const message of sent) socket.raw.send(message);
    const all = Buffer.concat(sent);
    await until('it was heard', () => vnc.last.said.length === all.length);
    assert.deepEqual(vnc.last.said, all);
    vnc.last.socket.write(serverCutText('copied'));
    assert.equal((await socket.take(14)).subarray(8).toString(), 'copied');
    socket.close();
    await until('the server sees it go', () => vnc.last.gone);
    await vnc.stop();
  });

  test('wire-guest 10, Part 5 8: a watcher sees the screen, and neither acts nor gets the clipboard', async () => {
    const { id, vnc } = await desktop();
    const { view_url: url, view_token: token } = (await record(id)).vnc;
    const socket = await TestSocket.open(url);
    await greet(socket);
    for (const message of [
      messages.key(true, 0x61),
      messages.pointer(1, 2, 3),
      messages.cutText('words'),
      messages.encodings(0, 5, -239, -308, -1063131698),
      messages.updateRequest(false, 4, 2),
    ]) {
      socket.raw.send(message);
    }
    const passed = [messages.encodings(0, -239, -308), messages.updateRequest(false, 4, 2)];
    await until('it was heard', () => vnc.last.said.length > 0);
    await until('it was heard', () => vnc.last.said.length >= Buffer.concat(passed).length);
    assert.deepEqual(vnc.last.said, Buffer.concat(passed));
    vnc.last.socket.write(serverCutText('secret'));
    vnc.last.socket.write(rawUpdate(4, 2));
    assert.deepEqual(await socket.take(48), rawUpdate(4, 2));
    // A message whose length nobody knows ends it.
    socket.raw.send(Buffer.from([77]));
    assert.equal((await socket.closing()).code, 1008);
    for (const name of ['events', 'terminal']) {
      const refused = await TestSocket.refused(url.replace('/vnc?', `/${name}?`));
      assert.equal(refused.status, 404, token);
    }
    await vnc.stop();
  });

  test('Part 7 Conflicts 3, Part 5 8: a wrong credential, an unknown id and a deleted computer are refused alike', async () => {
    const { id, vnc } = await desktop();
    const { url, token, view_token: watch } = (await record(id)).vnc;
    const other = await given();
    const gone = await given();
    const goneUrl = (await record(gone)).vnc.url;
    await account.as.send('DELETE', `/computers/${gone}`);
    const addresses = [
      url.replace(token, 'x'),
      url.replace(token, ''),
      url.replace(
        token,
        token.replace(/.$/, (c: string) => (c === '0' ? '1' : '0')),
      ),
      url.replace(id, 'vm-000000000000'),
      url.replace(id, 'anything'),
      url.replace(id, other),
      url.replace('/vnc', '/events').replace(token, watch),
      goneUrl,
    ];
    const answers = [];
    for (const address of addresses) answers.push(told(await TestSocket.refused(address)));
    for (const answer of answers) assert.deepEqual(answer, answers[0]);
    assert.equal(answers[0]?.status, 404);
    assert.ok(!JSON.stringify(answers).includes(token));
    await vnc.stop();
  });

  test('Part 4 Terminal, Part 6.2: an API key alone is 400 with guidance, whatever the id, upgrade or not', async () => {
    const id = await given();
    const fields = { vnc: 'url', events: 'events_url', terminal: 'terminal_url' };
    for (const [name, field] of Object.entries(fields)) {
      const answers = [];
      for (const which of [id, 'vm-000000000000']) {
        const plain = await account.as.get(`/computers/${which}/${name}`);
        assertRequestId(plain);
        const { request_id: _, ...body } = plain.body;
        answers.push({ status: plain.status, body });
        const address = `${service.baseUrl.replace('http', 'ws')}/computers/${which}/${name}`;
        const headers = { authorization: `Bearer ${account.key.raw}` };
        const upgrade = await TestSocket.refused(address, { headers });
        const { request_id: __, ...same } = upgrade.body;
        answers.push({ status: upgrade.status, body: same });
      }
      assert.equal(answers[0]?.status, 400);
      assert.ok(answers[0]?.body.error.includes(`\`${field}\``));
      for (const one of answers) assert.deepEqual(one, answers[0]);
    }
  });

  test('Part 7 Conflicts 3: suspended is 409 with resume_required, stopped 409, starting 409, a host away 503', async () => {
    const { id, vnc } = await desktop();
    const { url } = (await record(id)).vnc;
    await account.as.send('POST', `/computers/${id}/suspend`);
    const suspended = told(await TestSocket.refused(url));
    assert.deepEqual(
      [suspended.status, suspended.reason, suspended.resume_required],
      [409, 'unavailable', true],
    );
    await account.as.send('POST', `/computers/${id}/stop`);
    const stopped = told(await TestSocket.refused(url));
    assert.deepEqual(
      [stopped.status, stopped.reason, stopped.resume_required],
      [409, 'unavailable', undefined],
    );
    const fresh = await given();
    const starting = told(await TestSocket.refused((await record(fresh)).vnc.url));
    assert.deepEqual([starting.status, starting.reason], [409, 'starting']);
    await service.host.cable.cut();
    assert.equal(told(await TestSocket.refused(url)).status, 503);
    await service.host.cable.mend();
    await vnc.stop();
  });

  test('Part 5 8, Part 5 7: a lost right cuts what is open, in every process, and nothing else', async () => {
    const { id, vnc } = await desktop();
    const beside = await service.beside();
    const owner = await TestSocket.open((await record(id)).vnc.url);
    const cases: Record<string, (member: Member) => Promise<unknown>> = {
      'the key is revoked': ({ keyId }) => service.operator.revokeKey(keyId),
      'the member is removed': ({ email }) =>
        service.operator.removeMember(account.account.id, email),
      'the role falls to viewer': ({ userId }) =>
        service.database.run(sql("UPDATE members SET role = 'viewer' WHERE user_id = $1"), [
          userId,
        ]),
      'the person is suspended': ({ userId }) =>
        service.database.run(sql('UPDATE users SET suspended = true WHERE id = $1'), [userId]),
      'the seat is suspended': ({ userId }) =>
        service.database.run(sql('UPDATE members SET seat_suspended = true WHERE user_id = $1'), [
          userId,
        ]),
    };
    for (const [name, lose] of Object.entries(cases)) {
      const member = await service.member(account.account.id, 'member');
      const here = (await record(id, member.as)).vnc;
      const there = (await record(id, beside.as(member.raw))).vnc;
      const open = await Promise.all([here.url, there.url].map((url) => TestSocket.open(url)));
      const watching = await TestSocket.open(here.view_url);
      await lose(member);
      for (const socket of open) assert.equal((await socket.closing()).code, 4403, name);
      assert.equal((await TestSocket.refused(here.url)).status, 404, name);
      // A viewer still watches.
      if (name.includes('role')) assert.equal(watching.closed, undefined);
      else assert.equal((await watching.closing()).code, 4403, name);
      watching.close();
    }
    assert.equal(owner.closed, undefined);
    await account.as.send('POST', `/computers/${id}/restart`);
    assert.equal((await owner.closing()).code, 4401);
    await beside.stop();
    await vnc.stop();
  });

  test('Part 5 8, Part 5 7: a suspended account has no open sockets, until it is suspended no more', async () => {
    const other = await service.account();
    const { id, vnc } = await desktop(other);
    const beside = await service.beside();
    const stranger = await desktop();
    const untouched = await TestSocket.open((await record(stranger.id)).vnc.url);
    const member = await service.member(other.account.id, 'viewer');
    const here = await record(id, other.as);
    const there = await record(id, beside.as(other.key.raw));
    const watched = await record(id, member.as);
    const addresses = [
      here.vnc.url,
      here.events_url,
      there.vnc.url,
      there.events_url,
      watched.vnc.view_url,
    ];
    const open = await Promise.all(addresses.map((address) => TestSocket.open(address)));
    await service.operator.setAccount(other.account.id, { suspended: true });
    for (const socket of open) assert.equal((await socket.closing()).code, 4403);
    for (const address of addresses) assert.equal((await TestSocket.refused(address)).status, 404);
    assert.equal(untouched.closed, undefined);
    await service.operator.setAccount(other.account.id, { suspended: false });
    for (const address of addresses) (await TestSocket.open(address)).close();
    untouched.close();
    await beside.stop();
    await vnc.stop();
    await stranger.vnc.stop();
  });

  test('wire-guest 10: a delete, a stop, a suspend and the end of the service each say why', async () => {
    const codes: Record<string, number> = {};
    for (const verb of ['suspend', 'stop', 'delete'] as const) {
      const { id, vnc } = await desktop();
      const socket = await TestSocket.open((await record(id)).vnc.url);
      await greet(socket);
      if (verb === 'delete') await account.as.send('DELETE', `/computers/${id}`);
      else await account.as.send('POST', `/computers/${id}/${verb}`);
      codes[verb] = (await socket.closing()).code;
      await vnc.stop();
    }
    assert.deepEqual(codes, { suspend: 4409, stop: 4409, delete: 4404 });
    const { id, vnc } = await desktop();
    const beside = await service.beside();
    const socket = await TestSocket.open((await record(id, beside.as(account.key.raw))).vnc.url);
    await beside.stop();
    assert.equal((await socket.closing()).code, 1001);
    await vnc.stop();
  });

  test('Part 8 Sizes: a computer takes sixteen screens, and the newest is refused', async () => {
    const { id, vnc } = await desktop();
    const { view_url: url } = (await record(id)).vnc;
    const open = await Promise.all(Array.from({ length: 16 }, () => TestSocket.open(url)));
    const refused = told(await TestSocket.refused(url));
    assert.deepEqual([refused.status, refused.reason], [409, undefined]);
    assert.match(refused.error, /16/);
    for (const socket of open) assert.equal(socket.closed, undefined);
    open[0]?.close();
    const again = await until('there is room', async () => {
      const one = await TestSocket.tryOpen(url);
      return one instanceof TestSocket && one;
    });
    for (const socket of [...open, again]) socket.close();
    await vnc.stop();
  });

  test('wire-guest 10: a viewer that stops reading stops the guest’s server, and grows nothing', async () => {
    const { id, vnc } = await desktop();
    const socket = await TestSocket.open((await record(id)).vnc.url);
    await greet(socket);
    socket.raw.pause();
    collect();
    const held = process.memoryUsage();
    let written = 0;
    const chunk = Buffer.alloc(64 * 1024, 1);
    // Until it takes no more; then what lies in between is all there is.
    await until('the guest’s server is held up', async () => {
      for (let n = 0; n < 64; n += 1) {
        if (vnc.last.socket.writableLength > 4 * 1024 * 1024) break;
        vnc.last.socket.write(chunk);
        written += chunk.length;
      }
      const waiting = vnc.last.socket.writableLength;
      await new Promise((resolve) => setTimeout(resolve, 200));
      return waiting > 4 * 1024 * 1024 && vnc.last.socket.writableLength === waiting;
    });
    const between = written - vnc.last.socket.writableLength;
    assert.ok(between < 16 * 1024 * 1024, `${between} bytes are in between`);
    // What has passed through is not held, and only looks so until it is collected.
    collect();
    const { arrayBuffers } = process.memoryUsage();
    assert.ok(arrayBuffers - held.arrayBuffers < 8 * 1024 * 1024);
    socket.close();
    await until('the server sees it go', () => vnc.last.gone);
    await vnc.stop();
  });

  test('Part 7: what asks for another upgrade, or elsewhere, is answered as ever', async () => {
    const headers = { connection: 'Upgrade', upgrade: 'h2c' };
    assert.equal((await account.as.send('GET', '/whoami', { headers })).status, 200);
    const elsewhere = await TestSocket.refused(`${service.baseUrl.replace('http', 'ws')}/whoami`, {
      headers: { authorization: `Bearer ${account.key.raw}` },
    });
    assert.equal(elsewhere.status, 200);
    assert.equal(elsewhere.body.role, 'owner');
  });
});

type Member = Awaited<ReturnType<TestService['member']>>;
