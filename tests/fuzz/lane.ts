// One attacker: a connection at a time, an account of its own, and a model of what that account must hold.

import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TestService } from '../support/service.ts';
import { type Keyring, listsEverything } from './keyring.ts';
import { Model } from './model.ts';
import { type RawAnswer, RawConnection, shown } from './raw-connection.ts';
import { type Batch, type Hostile, isHarmless, type Lot, RequestMaker } from './requests.ts';
import { saysUnreadable, type Verdict } from './verdict.ts';

/** What all lanes have in common. */
export interface Shared {
  readonly keys: Pick<Keyring, 'poor' | 'suspended' | 'gone'>;
  readonly foreignWorkspace: string;
}

export async function share(service: TestService): Promise<Shared> {
  // All lanes share it, so it may only read: what it changed would be in no lane's model.
  const poor = await service.member((await service.account('none')).account.id, 'viewer');
  const other = await service.account();
  const gone = await service.member(other.account.id, 'owner');
  await service.operator.removeMember(other.account.id, gone.email);
  const { id } = (await other.as.post('/workspaces', { name: 'not yours' })).body;
  await service.operator.setAccount(other.account.id, { suspended: true });
  const keys = { poor: poor.raw, suspended: other.key.raw, gone: gone.raw };
  return { keys, foreignWorkspace: id };
}

/** A connection at a time, an account of its own: what it is answered tells all that happens there. */
export class Lane {
  readonly model: Model;
  readonly #lot: Lot;
  readonly #maker: RequestMaker;
  readonly #verdict: Verdict;
  readonly #port: number;
  #connection: RawConnection | undefined;

  private constructor(port: number, lot: Lot, verdict: Verdict) {
    this.#port = port;
    this.#lot = lot;
    this.model = lot.model;
    this.#maker = new RequestMaker(lot);
    this.#verdict = verdict;
  }

  static async open(
    service: TestService,
    port: number,
    { lane, random, junk }: Pick<Lot, 'lane' | 'random' | 'junk'>,
    shared: Shared,
    verdict: Verdict,
  ): Promise<Lane> {
    const { account, key, as } = await service.account();
    const { id: home } = (await as.post('/workspaces', { name: 'home' })).body;
    const join = service.member.bind(undefined, account.id);
    const revoked = await join('owner');
    await service.operator.revokeKey(revoked.keyId);
    const keys: Keyring = {
      owner: key.raw,
      member: (await join('member', { manageKeys: true })).raw,
      viewer: (await join('viewer', { manageKeys: true })).raw,
      confinedOwner: (await join('owner', { workspace: home, manageKeys: true })).raw,
      confinedViewer: (await join('viewer', { workspace: home })).raw,
      revoked: revoked.raw,
      ...shared.keys,
    };
    const model = await Model.of(service.database, account.id);
    const { foreignWorkspace } = shared;
    return new Lane(port, { lane, random, junk, keys, model, foreignWorkspace }, verdict);
  }

  async run(count: number): Promise<void> {
    for (let sent = 0; sent < count;) {
      const batch = this.#maker.batch();
      sent += batch.whole.length + (batch.last === undefined ? 0 : 1);
      try {
        await this.#exchange(batch);
      } catch (error) {
        this.#connection?.vanish();
        throw new Error(this.#told(batch, sent), { cause: error });
      }
    }
    this.#connection?.vanish();
  }

  async #exchange(batch: Batch): Promise<void> {
    const connection = (this.#connection ??= await RawConnection.open(this.#port));
    await this.#send(connection, batch);
    if (batch.afterwards === 'vanishes') {
      if (this.#lot.random.chance(0.5)) connection.vanish();
      else connection.reset();
      this.#connection = undefined;
      return;
    }
    const quiet = batch.whole.every(({ aim }) => isHarmless(aim));
    let open = true;
    for (const [n, request] of batch.whole.entries()) {
      const answer = await readFinal(connection, request);
      assert.ok(
        answer,
        `closed before answer ${n + 1} (${connection.failure?.message ?? 'no error'})`,
      );
      this.#take(answer, request, quiet);
      open = !isLast(answer);
      if (!open) break;
    }
    if (open && batch.afterwards === 'says no more') {
      await this.#readStrays(connection, batch);
      open = false;
    }
    if (open) {
      assert.equal(connection.unread.length, 0, 'said something that nobody asked for');
      return;
    }
    const rest = await connection.end();
    assert.equal(rest.length, 0, `said more after its last answer: ${shown(rest)}`);
    connection.vanish();
    this.#connection = undefined;
  }

  async #send(
    connection: RawConnection,
    { whole, last, afterwards, writes }: Batch,
  ): Promise<void> {
    const bytes = Buffer.concat([...whole, ...(last ? [last] : [])].map((part) => part.bytes));
    const cuts = Array.from({ length: writes - 1 }, () => this.#lot.random.below(bytes.length));
    let at = 0;
    for (const cut of cuts.toSorted((a, b) => a - b)) {
      connection.write(bytes.subarray(at, cut));
      at = cut;
      await nextTurn();
    }
    connection.write(bytes.subarray(at));
    if (afterwards === 'says no more') connection.finish();
  }

  /** What is said to bytes that are hardly a request: nothing, or an answer, the last of which ends it. */
  async #readStrays(connection: RawConnection, { last }: Batch): Promise<void> {
    const asked = { method: 'GET', madeUpIds: [], hostless: last?.hostless === true };
    for (let count = 0; ;) {
      const answer = await connection.answer();
      if (answer === undefined) return;
      assert.ok(last, 'an answer too many');
      if (answer.status === 100) continue;
      count += 1;
      assert.ok(count <= 2, 'more answers than requests');
      const body = this.#verdict.hold(answer, asked);
      if (answer.status < 300 && !isHarmless(last.aim)) {
        assert.equal(count, 1, 'obeyed twice');
        this.model.obeyed(last.aim, body);
      }
      if (isLast(answer)) return;
    }
  }

  #take(answer: RawAnswer, request: Hostile, quiet: boolean): void {
    const body = this.#verdict.hold(answer, request);
    assert.ok(!saysUnreadable(body), 'a sound request was given the answer to bytes after it');
    if (answer.status >= 300 || ['HEAD', 'OPTIONS'].includes(request.method)) return;
    if (!isHarmless(request.aim)) this.model.obeyed(request.aim, body);
    else if (request.method !== 'GET') assert.fail('obeyed a request that means nothing');
    else if (request.aim.kind === 'list workspaces' && quiet) this.#compareListing(request, body);
  }

  /** Only the listing of an account-wide key of this lane shows everything. */
  #compareListing({ head }: Hostile, body: unknown): void {
    if (listsEverything(head, this.#lot.keys)) this.model.assertListed(body);
  }

  #told({ whole, last, afterwards }: Batch, sent: number): string {
    const parts = [
      ...whole.map(({ aim, bytes }) => `${JSON.stringify(aim)} ${shown(bytes)}`),
      ...(last === undefined ? [] : [`${last.kind} ${shown(last.bytes)}`]),
    ];
    return `lane ${this.#lot.lane}, about request ${sent}, sender ${afterwards}:\n${parts.join('\n')}`;
  }
}

async function readFinal(
  connection: RawConnection,
  { method, bytes }: Hostile,
): Promise<RawAnswer | undefined> {
  const answer = await connection.answer(method === 'HEAD');
  if (answer?.status !== 100) return answer;
  assert.match(bytes.toString('latin1'), /expect:.*100-continue/i, 'a 100 that nobody asked for');
  return connection.answer(method === 'HEAD');
}

function isLast({ all }: RawAnswer): boolean {
  return all('connection').some((value) => value.toLowerCase() === 'close');
}
