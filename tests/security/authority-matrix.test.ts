// Every route × role × key × state over HTTP, held against what the specification says (specified.ts).

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import type { Route } from '../../packages/contract/route.ts';
import { routes } from '../../packages/contract/routes.ts';
import { sql } from '../../packages/server/db/database.ts';
import { assertRequestId, assertUnmetered } from '../support/assertions.ts';
import type { Answer } from '../support/client.ts';
import { startService, type TestService } from '../support/service.ts';
import {
  type Caller,
  isMetered,
  makeWorld,
  type State,
  states,
  withFreshKeys,
  type World,
} from './callers.ts';
import { assertOutcome, outcomeAtTheDoor, outcomeOf } from './outcome.ts';
import type { Prepared, Specified } from './specified/shape.ts';
import { specified } from './specified.ts';
import { assertNothingSpent, changed, Tables } from './table-contents.ts';

suite('authority matrix', { timeout: 900_000 }, () => {
  let service: TestService;
  let tables: Tables;
  const worlds = new Map<State, World>();

  before(async () => {
    // Nothing is delivered meanwhile: what a call queued is what there is.
    service = await startService({ simulated: true, webhooks: { work: false } });
    // Every cell has webhooks of its own.
    await service.operator.setPlan('swarm', { max_webhooks: 100_000 });
    for (const state of states) worlds.set(state, await makeWorld(service, state));
    for (const world of worlds.values()) if (isMetered(world.state)) await useOnce(world);
    tables = await Tables.of(service);
  });
  after(() => service.stop());

  test('Part 5 3, Part 8 Rate: the specification’s table and the contract name the same operations', () => {
    const contract = Object.entries<Route>(routes).map(([id, { method, path }]) => [
      id,
      `${method} ${path}`,
    ]);
    const table = Object.entries(specified).map(([id, { method, path }]) => [
      id,
      `${method} ${path}`,
    ]);
    assert.deepEqual(Object.fromEntries(table), Object.fromEntries(contract));
    for (const [id, { calls }] of Object.entries(specified)) assert.ok(calls.length > 0, id);
  });

  test('Part 5 2, Part 5 3, Part 4 Workspaces 2, Part 4 Workspaces 3, Part 4 Workspaces 9, wire-account 4: in good standing, role, scope and key management decide', () =>
    everyRoute('plain'));

  test('Part 4 Account, Part 5 7, wire-account 4: a suspended account answers its quota and whoami, the rest is 403 revoked at full cost', () =>
    everyRoute('account suspended'));

  test('Part 5 7, Part 8 Rate: a removed member is 403 revoked on every route, unmetered', () =>
    everyRoute('member removed'));

  test('Part 5 7, Part 8 Rate: a suspended person is 403 revoked on every route, unmetered', () =>
    everyRoute('person suspended'));

  test('Part 5 7, Part 2 WorkspaceMember: a suspended seat is 403 revoked on every route, unmetered', () =>
    everyRoute('seat suspended'));

  test('Part 5 7: an unverified e-mail address keeps from making API keys, computers and clones, and from nothing else', () =>
    everyRoute('e-mail unverified'));

  test('Part 5 6, Part 8 Rate: a revoked key is 401 revoked on every route, free of charge', () =>
    everyRoute('key revoked'));

  test('Part 1 1, Part 5 1, Part 5 6: no credential is 401 missing on every route, free of charge', () =>
    everyRoute('no credential'));

  test('Part 5 5, Part 5 6: a malformed or unknown credential is 401 invalid on every route, free of charge', () =>
    everyRoute('malformed credential'));

  test('Part 1 3, Part 8 Rate: HEAD has the status and headers of GET, its cost, and no body, whoever asks', async () => {
    const readings = cells.filter(({ stated }) => stated.method === 'GET');
    await everybody(async (caller, place) => {
      // Refused before anything is known of the holder: one caller is as good as all.
      if (!isMetered(caller.world.state) && place > 0) return;
      for (const { id, stated, call } of readings) {
        const path = pathOf(stated, await call.prepare(caller));
        await inCell(`HEAD as ${id}: ${caller.label}`, async () => {
          const ranged = { headers: { range: 'bytes=0-1' } };
          const got = await caller.send('GET', path);
          const head = await caller.send('HEAD', path, ranged);
          assert.deepEqual(comparable(head), comparable(got));
          await withFreshKeys(1, caller, async (fresh) => {
            const outcome = outcomeOf(caller, stated, call);
            assertOutcome(await fresh(0).send('HEAD', path, ranged), outcome, 'HEAD');
          });
        });
      }
    });
  });

  test('Part 1 5, Part 8 Rate: an unsupported method is 405 with Allow for one unit, after authority', async () => {
    const requests = [...methodsByPath()].flatMap(([path, methods]) =>
      allMethods
        .filter((method) => !allowOf(methods).split(', ').includes(method))
        .map((method) => ({ method, path, allow: allowOf(methods) })),
    );
    await refusedAtTheDoor(405, requests);
  });

  test('Part 7, Part 8 Rate: a path that matches nothing is 404 for one unit, after authority', async () => {
    const paths = [
      '',
      '/nothing',
      '/workspaces/{id}/nothing',
      '/workspaces/{id}%2Fmembers',
      '/computers/{id}/nothing',
      '/computers/{id}/exec/1/nothing',
      '/webhooks/{id}/nothing',
    ];
    const methods = ['GET', 'HEAD', 'POST'];
    await refusedAtTheDoor(
      404,
      paths.flatMap((path) => methods.map((method) => ({ method, path }))),
    );
  });

  test('Part 1 4, Part 5 1, Part 8 Rate: OPTIONS is answered 204 to everybody, unmetered, without a resource', async () => {
    await everybody(async (caller) => {
      for (const [path, methods] of methodsByPath()) {
        await inCell(`OPTIONS ${path}: ${caller.label}`, async () => {
          const answer = await caller.send('OPTIONS', path.replaceAll(/\{\w+\}/g, 'no-such-thing'));
          assert.equal(answer.status, 204);
          assert.equal(answer.text, '');
          assert.equal(answer.headers['allow'], allowOf(methods));
          assertRequestId(answer);
          assertUnmetered(answer);
        });
      }
    });
  });

  /** Each cell: the status and headers the specification says, and exactly the tables it may change. */
  async function everyRoute(state: State): Promise<void> {
    const world = worldIn(state);
    // Where the credential is refused, nothing may change in any cell, so that the tables are looked at once.
    if (!isMetered(state)) {
      const ready = await Promise.all(
        world.callers.map((caller) =>
          Promise.all(
            cells.map(async (cell) => ({ cell, prepared: await cell.call.prepare(caller) })),
          ),
        ),
      );
      return unchanging(world, async (caller, place) => {
        for (const { cell, prepared } of ready[place] ?? []) await answered(cell, caller, prepared);
      });
    }
    for (const caller of world.callers) {
      await withFreshKeys(cells.length, caller, async (fresh) => {
        const ready = await Promise.all(
          cells.map(async (cell, n) => {
            const who = fresh(n);
            return { cell, who, prepared: await cell.call.prepare(who) };
          }),
        );
        let contents = await tables.read();
        for (const { cell, who, prepared } of ready) {
          await inCell(`${cell.id}: ${caller.label}`, async () => {
            const answer = await answered(cell, who, prepared);
            const now = await tables.read();
            const expected = answer.status < 300 ? prepared.changes : [];
            assert.deepEqual(changed(contents, now), expected, 'tables changed');
            contents = now;
            if (answer.status >= 300) return;
            await prepared.proves(answer);
            // A proof may bring to its end what the call began.
            if (expected.length > 0) contents = await tables.read();
          });
        }
      });
    }
  }

  async function refusedAtTheDoor(status: 404 | 405, requests: readonly Knock[]): Promise<void> {
    // Each caller asks for every path, and all of them together in every way.
    const byPath = [...Map.groupBy(requests, ({ path }) => path).values()];
    await everybody((caller, place) =>
      withFreshKeys(byPath.length, caller, async (fresh) => {
        for (const [n, ways] of byPath.entries()) {
          const { method, path, allow } = ways[place % ways.length] as Knock;
          await inCell(`${method} ${path}: ${caller.label}`, async () => {
            const answer = await fresh(n).send(method, filled(path, caller));
            assertOutcome(answer, outcomeAtTheDoor(caller, status, allow), method);
          });
        }
      }),
    );
  }

  /** Everybody does what changes nothing. */
  async function everybody(work: Work): Promise<void> {
    for (const world of worlds.values()) await unchanging(world, work);
  }

  /** All callers of a world at once; whoever is not metered has spent nothing by it. */
  async function unchanging(world: World, work: Work): Promise<void> {
    const untouched = await tables.read();
    // Everybody comes to an end before a failure is told, so that the next test finds things at rest.
    for (const done of await Promise.allSettled(world.callers.map(work))) {
      if (done.status === 'rejected') throw done.reason;
    }
    const now = await tables.read();
    assert.deepEqual(changed(untouched, now), [], `${world.state}: tables changed`);
    await assertUnspentIfFree(world);
  }

  async function assertUnspentIfFree(world: World): Promise<void> {
    if (isMetered(world.state)) return;
    const keys = world.callers.map(({ key }) => key.id);
    await assertNothingSpent(service, world.accountId, keys);
  }

  function worldIn(state: State): World {
    const world = worlds.get(state);
    assert.ok(world);
    return world;
  }
});

const used = sql('SELECT FROM api_key_uses WHERE key_id = $1');

/** Until its use is noted, a key's `last_used_at` is null and its JSON shorter: HEAD would differ from GET. */
async function useOnce({ service, callers }: World): Promise<void> {
  for (const who of callers) {
    while ((await service.database.run(used, [who.key.id])).length === 0)
      await who.send('GET', '/whoami');
  }
}

const cells = Object.entries(specified).flatMap(([id, stated]) =>
  stated.calls.map((call) => ({ id, stated, call })),
);

type Cell = (typeof cells)[number];

/** `place`: which of its world's callers it is. */
type Work = (caller: Caller, place: number) => Promise<void>;

interface Knock {
  readonly method: string;
  readonly path: string;
  readonly allow?: string;
}

/** Has the status and headers that the specification says. */
async function answered(
  { id, stated, call }: Cell,
  who: Caller,
  prepared: Prepared,
): Promise<Answer> {
  const { json, raw } = prepared;
  const sending = { ...(json !== undefined && { json }), ...(raw !== undefined && { raw }) };
  const answer = await who.send(stated.method, pathOf(stated, prepared), sending);
  await inCell(`${id}: ${who.label}`, async () =>
    assertOutcome(answer, outcomeOf(who, stated, call), stated.method),
  );
  return answer;
}

const allMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND'];

function methodsByPath(): Map<string, string[]> {
  const byPath = Map.groupBy(Object.values(specified), ({ path }) => path);
  return new Map([...byPath].map(([path, group]) => [path, group.map(({ method }) => method)]));
}

/** Part 1 rule 4: HEAD wherever GET exists, OPTIONS last, in stable order. */
function allowOf(methods: readonly string[]): string {
  return ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
    .filter((method) => method === 'OPTIONS' || methods.includes(method.replace('HEAD', 'GET')))
    .join(', ');
}

function pathOf({ path }: Specified, { parameters = {}, query = '' }: Prepared): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => parameters[name] ?? name) + query;
}

function filled(path: string, { world, key }: Caller): string {
  const id = path.startsWith('/api-keys') ? key.id : world.home;
  return path.replace('{id}', id).replaceAll(/\{(\w+)\}/g, '$1');
}

/** Of what differs between any two answers only that it is there. */
const everNew = ['date', 'x-request-id', 'ratelimit-remaining', 'ratelimit-reset'];

function comparable({ status, headers }: Answer): object {
  const there = everNew.filter((name) => name in headers).map((name) => [name, 'is there']);
  return { status, ...headers, ...Object.fromEntries(there) };
}

/** Names the cell in which an assertion failed. */
async function inCell(label: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw new Error(label, { cause: error });
  }
}
