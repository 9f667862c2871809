import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import type { HostCommand } from '../../packages/contract/host/api.ts';
import { sql } from '../../packages/server/db/database.ts';
import { assertRefused } from '../support/assertions.ts';
import type { Client } from '../support/client.ts';
import {
  acted,
  computer,
  finished,
  keepUnfinished,
  made,
  operation,
  small,
} from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

suite('outcomes never heard', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  const keyed = (as: Client, key: string, method: string, path: string, json?: unknown) =>
    as.send(method, path, {
      ...(json !== undefined && { json }),
      headers: { 'idempotency-key': key },
    });
  const create = (as: Client, key: string, wish: object = { ...small, start: false }) =>
    keyed(as, key, 'POST', '/computers', wish);
  const run = (text: string, values: unknown[]) => service.database.run(sql(text), values);
  /** As if its holder had been gone for long. */
  const letGo = (operationId: string) =>
    run('UPDATE operations SET held_until = now() WHERE id = $1', [operationId]);

  test('wire-computers 10, wire-computers 9, Part 3 Operation: an outcome never heard spends the key; the operation is pending until it is found out', async () => {
    const { as, account } = await service.account();
    for (const fault of ['unheard', 'unasked'] as const) {
      service.host.cable.fault('create', fault);
      const lost = await create(as, fault);
      await keepUnfinished(service, account.id);
      const { operation_id } = lost.body;
      assertRefused(lost, 503, undefined, { operation_id });
      const further = { code: 'idempotency_outcome_unknown', operation_id };
      assertRefused(await create(as, fault), 409, undefined, further);
      const pending = await operation(as, operation_id);
      assert.deepEqual([pending.state, pending.idempotency_key], ['pending', fault]);
      await letGo(operation_id);
      const done = await finished(as, operation_id);
      assert.deepEqual([done.state, done.kind], ['succeeded', 'create']);
      assert.equal((await computer(as, done.computer_id)).status, 'stopped');
      assertRefused(await create(as, fault), 409, undefined, further);
    }
    assert.equal((await as.get('/computers')).body.length, 2, 'each was made once');
  });

  test('wire-computers 9, Part 3 Operation: whatever the call was, what became of it is found out', async () => {
    const { as } = await service.account();
    const { id } = await made(as);
    const path = `/computers/${id}`;
    const calls: [HostCommand['kind'], string, string, unknown, object][] = [
      ['suspend', 'POST', `${path}/suspend`, undefined, { status: 'suspended' }],
      ['start', 'POST', `${path}/start`, undefined, { status: 'running', running_ram_mb: 512 }],
      ['restart', 'POST', `${path}/restart`, undefined, { status: 'running' }],
      ['stop', 'POST', `${path}/stop`, undefined, { status: 'stopped', running_ram_mb: 0 }],
      ['resize', 'PATCH', path, { cpu: 3 }, { status: 'stopped', cpu: 3 }],
      ['clone', 'POST', `${path}/clone`, {}, { status: 'stopped', cpu: 3 }],
    ];
    for (const fault of ['unheard', 'unasked'] as const) {
      for (const [kind, method, where, json, then] of calls) {
        if (kind === 'suspend' && fault === 'unasked') await acted(as, id, 'start');
        service.host.cable.fault(kind, fault);
        const lost = await keyed(as, `${kind}-${fault}`, method, where, json);
        const { operation_id } = lost.body;
        assertRefused(lost, 503, undefined, { operation_id });
        await letGo(operation_id);
        const done = await finished(as, operation_id);
        assert.deepEqual([done.kind, done.state, done.error], [kind, 'succeeded', null]);
        const now = await computer(as, done.computer_id);
        for (const [field, value] of Object.entries(then)) assert.equal(now[field], value, kind);
      }
    }
    service.host.cable.fault('delete', 'unheard');
    const { operation_id } = (await as.delete(path)).body;
    await letGo(operation_id);
    assert.equal((await finished(as, operation_id)).state, 'succeeded');
    assertRefused(await as.get(path), 404);
  });

  test('wire-computers 9: an outcome that is not heard for an hour is lost', async () => {
    const { as } = await service.account();
    const { id } = await made(as);
    service.host.cable.fault('stop', 'unasked');
    const { operation_id } = (await keyed(as, 'k', 'POST', `/computers/${id}/stop`)).body;
    await run("UPDATE operations SET created_at = now() - interval '61 minutes' WHERE id = $1", [
      operation_id,
    ]);
    await service.host.cable.cut();
    await letGo(operation_id);
    const lost = await finished(as, operation_id);
    assert.deepEqual([lost.state, lost.error.code], ['failed', 'lost']);
    await service.host.cable.mend();
    const further = { code: 'idempotency_outcome_unknown', operation_id };
    const again = await keyed(as, 'k', 'POST', `/computers/${id}/stop`);
    assertRefused(again, 409, undefined, further);
  });

  test('Part 3 Operation: a power change without a key whose host did not answer is lost at once', async () => {
    const { as } = await service.account();
    const { id } = await made(as);
    for (const kind of ['stop', 'start', 'suspend', 'start', 'restart'] as const) {
      service.host.cable.fault(kind, 'unheard');
      const answer = await as.send('POST', `/computers/${id}/${kind}`);
      const { operation_id } = answer.body;
      assertRefused(answer, 503, undefined, { operation_id });
      const { state, error } = await operation(as, operation_id);
      assert.deepEqual([state, error.code], ['failed', 'lost']);
      const seen = { stop: 'stopped', suspend: 'suspended', start: 'running', restart: 'running' };
      assert.equal((await computer(as, id)).status, seen[kind]);
    }
    await until('what is charged agrees with what runs', async () => {
      const { usage } = (await as.get('/account')).body;
      return usage.running_or_reserved_ram_mb === 512;
    });
  });
});
