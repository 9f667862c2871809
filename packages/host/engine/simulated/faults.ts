/** Holds the faults that a test has put in the way of the simulated engine's next calls. */
import { once } from 'node:events';
import { type Context, EngineError } from '../engine.ts';

/**
 * `before`: fails and nothing has happened. `half`: fails in the middle; what is made is left broken.
 * `after`: happens and then fails. `hang`: nothing happens until the caller gives up. `lost`: happens,
 * and the answer never comes.
 */
export type Fault = 'before' | 'half' | 'after' | 'hang' | 'lost';

interface Planned {
  readonly fault: Fault;
  readonly kind: EngineError['kind'];
  left: number;
}

export class Faults<Call extends string> {
  readonly #planned = new Map<Call, Planned[]>();

  /** Meets the next `times` calls of that name, after those that were put there earlier. */
  put(
    call: Call,
    fault: Fault,
    { times = 1, kind = 'failed' }: { times?: number; kind?: EngineError['kind'] } = {},
  ): void {
    const planned = this.#planned.get(call) ?? [];
    this.#planned.set(call, [...planned, { fault, kind, left: times }]);
  }

  clear(): void {
    this.#planned.clear();
  }

  /** Carries out a call as the plan has it. `half` leaves what a cut-off call leaves. */
  async meet<Result>(
    context: Context,
    call: Call,
    effect: () => Result,
    half: () => void = () => {},
  ): Promise<Result> {
    const planned = this.#take(call);
    if (planned === undefined) return effect();
    const { fault, kind } = planned;
    if (fault === 'half') half();
    const happens = fault === 'after' || fault === 'lost';
    if (happens) effect();
    if (fault === 'hang' || fault === 'lost') await untilAborted(context);
    throw new EngineError(kind, `a fault was put in the way of ${call}: ${fault}`);
  }

  #take(call: Call): Planned | undefined {
    const queue = this.#planned.get(call) ?? [];
    const first = queue[0];
    if (first === undefined) return undefined;
    first.left -= 1;
    if (first.left === 0) queue.shift();
    return first;
  }
}

async function untilAborted({ signal }: Context): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort');
  throw signal.reason;
}
