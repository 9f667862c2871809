// One keyed call that a crash may cut off, and what must be true of it when everything has settled.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Answer } from '../support/client.ts';
import { type ComputerGround, computerOf, type Operation } from './ground.ts';

export interface Listed {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly state: string;
  readonly cpu: number;
  readonly disk_gb: number;
  readonly running_ram_mb: number;
  readonly build?: { readonly failed?: string };
}

export type Wish =
  | { readonly kind: 'create'; readonly start: boolean; readonly secret: string }
  | { readonly kind: 'clone'; readonly source: string }
  | { readonly kind: 'delete'; readonly id: string };

/** Where a file lies that only the source of clones has; beside it nothing is written. */
export const mark = '/root/mark';

/** Of the secret that is bound to those that are created. */
export const boundValue = 'a value through crashes';

let count = 0;

export class Attempt {
  readonly wish: Wish;
  readonly key: string;
  answer: Answer | undefined;

  constructor(wish: Wish) {
    count += 1;
    this.wish = wish;
    this.key = `${wish.kind}-${count}`;
  }

  /** Undefined when the connection was cut. */
  async send(ground: ComputerGround): Promise<void> {
    this.answer = await this.#call(ground).catch((error: unknown) => {
      if (error instanceof assert.AssertionError) throw error;
      return undefined;
    });
  }

  #call(ground: ComputerGround): Promise<Answer> {
    const headers = { 'idempotency-key': this.key };
    const { wish, key: name } = this;
    switch (wish.kind) {
      case 'create': {
        const secrets = [{ secret_id: wish.secret, env: 'TOKEN' }];
        const json = { name, size: 'small', start: wish.start, secrets };
        return ground.as.send('POST', '/computers', { json, headers });
      }
      case 'clone':
        return ground.as.send('POST', `/computers/${wish.source}/clone`, {
          json: { name },
          headers,
        });
      default:
        return ground.as.send('DELETE', `/computers/${wish.id}`, { headers });
    }
  }

  /** Answers how it went, in a word. */
  async check(ground: ComputerGround, listing: readonly Listed[]): Promise<string> {
    const found = await ground.as.get(`/operations?idempotency_key=${this.key}`);
    const [operation] = found.body.operations as Operation[];
    const { kind } = this.wish;
    if (operation === undefined) {
      this.#checkNothing(listing);
      return `${kind} never was`;
    }
    assert.equal(operation.kind, kind);
    if (operation.state === 'succeeded') await this.#checkDone(ground, operation, listing);
    else this.#checkFailed(operation, listing);
    await this.#checkReplay(ground, operation);
    const told = this.answer === undefined ? 'cut off' : `answered ${this.answer.status}`;
    return `${kind} ${operation.state}, ${told}`;
  }

  /** Refused, or never heard of: then it left nothing behind, and no success was told. */
  #checkNothing(listing: readonly Listed[]): void {
    const { answer, wish } = this;
    if (answer !== undefined) {
      assert.ok(answer.status >= 400, `${this.key} was told ${answer.text}`);
      assert.equal(answer.body.operation_id, undefined, `${this.key}: ${answer.text}`);
    }
    const there =
      wish.kind === 'delete'
        ? !listing.some(({ id, state }) => id === wish.id && state === 'live')
        : listing.some(({ name }) => name === this.key);
    assert.equal(there, false, `${this.key} has no operation and yet an effect`);
  }

  async #checkDone(
    ground: ComputerGround,
    operation: Operation,
    listing: readonly Listed[],
  ): Promise<void> {
    const { wish } = this;
    const row = listing.find(({ id }) => id === operation.computer_id);
    if (wish.kind === 'delete') return assert.equal(row, undefined, `${this.key} left ${wish.id}`);
    assert.deepEqual([row?.name, row?.state], [this.key, 'live']);
    const running = wish.kind === 'create' && wish.start;
    assert.equal(row?.status, running ? 'running' : 'stopped', this.key);
    if (running) {
      const token = await ground.run(operation.computer_id, 'printf %s "$TOKEN"');
      assert.equal(token, boundValue, this.key);
    }
    if (wish.kind === 'clone') assert.equal(await readMark(ground, operation.computer_id), 'mark');
  }

  #checkFailed({ computer_id, error }: Operation, listing: readonly Listed[]): void {
    const row = listing.find(({ id }) => id === computer_id);
    assert.ok(error !== null && error.message !== '', this.key);
    switch (this.wish.kind) {
      case 'create':
        // Made, and it would not boot; or refused when it was taken up, and then it never was.
        if (error.code === 'start_failed') assert.equal(row?.status, 'stopped');
        else assert.equal(row, undefined, error.message);
        break;
      case 'clone':
        assert.deepEqual([error.code, row?.status], ['build_failed', 'build-failed']);
        assert.equal(row?.build?.failed, error.message);
        break;
      default:
        assert.ok(row, `${this.key} failed: ${error.message}, and yet the computer is gone`);
    }
  }

  /** wire-computers 10. */
  async #checkReplay(ground: ComputerGround, operation: Operation): Promise<void> {
    const again = await this.#call(ground);
    const { answer } = this;
    if (answer !== undefined && answer.status >= 500) {
      assert.equal(answer.body.operation_id, operation.id, answer.text);
      assert.deepEqual(
        [again.status, again.body.code, again.body.operation_id],
        [409, 'idempotency_outcome_unknown', operation.id],
      );
      return;
    }
    assert.equal(again.headers['idempotent-replayed'], 'true', again.text);
    assert.equal(again.body.operation_id, operation.id);
    if (answer !== undefined) {
      assert.equal(again.status, answer.status);
      const { vnc: _, url: __, events_url: ___, terminal_url: ____, ...told } = answer.body;
      assert.deepEqual(again.body, told);
    }
  }
}

/** From the guest's disk, which the host can read while it stands still. */
async function readMark(ground: ComputerGround, id: string): Promise<string> {
  const instance = (await ground.instances()).find((each) => computerOf(each) === id);
  assert.ok(instance, id);
  const { alias, pool } = ground.place;
  const disk = join(alias, 'storage-pools', pool, 'containers', instance.name, 'rootfs');
  return readFileSync(join(disk, mark), 'utf8').trim();
}
