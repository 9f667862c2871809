/** Opens the Incus engine of a data folder: installs, starts and prepares what is missing. */
import type { Context } from '../engine.ts';
import { IncusClient } from './client.ts';
import { IncusDaemon } from './daemon.ts';
import type { Endpoint } from './endpoint.ts';
import { IncusEngine } from './engine.ts';
import { installEngine } from './install.ts';
import { patiently } from './patience.ts';
import { type Place, placeOf } from './place.ts';
import { preseed, Unavailable } from './preseed.ts';

const frozenMs = 20_000;

export interface IncusOptions {
  /** CUBICLE_DATA; Incus lives in its folder `incus`. */
  readonly dataDir: string;
  /** Progress for a person. */
  readonly say: (line: string) => void;
  /** An Incus of the operator's (see `readEndpoint`); undefined: one of our own. */
  readonly endpoint?: Endpoint | undefined;
  /** A pool that the operator's Incus has; undefined: one of our own. */
  readonly pool?: string | undefined;
  readonly largestPoolGib?: number | undefined;
  /** The size of our own pool, when it is made, whatever is free now: it fills as it is used. */
  readonly poolGib?: number | undefined;
  /** How long to wait for another owner of the data folder to end. */
  readonly waitMs?: number | undefined;
}

export interface OpenedIncus {
  readonly engine: IncusEngine;
  readonly place: Place;
  /** Undefined when the Incus is not ours. */
  readonly daemon: IncusDaemon | undefined;
  /** Ends our own daemon; computers go on running only when they are kept. */
  stop(options: { keepComputers: boolean }): Promise<void>;
  /** Deletes every computer and image of our own Incus and leaves nothing of it on the machine. */
  purge(): Promise<void>;
}

export async function openIncus(context: Context, options: IncusOptions): Promise<OpenedIncus> {
  const { say, endpoint, largestPoolGib, poolGib, waitMs } = options;
  if (endpoint === undefined) await installEngine(say);
  const own = await placeOf(options.dataDir);
  const place = options.pool === undefined ? own : { ...own, pool: options.pool };
  const daemon =
    endpoint === undefined
      ? await IncusDaemon.open(place, { say, waitMs, signal: context.signal })
      : undefined;
  const client = new IncusClient(endpoint ?? { kind: 'unix', path: place.socket });
  const engine = new IncusEngine(client, place);
  try {
    await patiently(context, async () => {
      try {
        const ours = daemon !== undefined;
        await preseed(context, client, place, { say, largestPoolGib, poolGib, own: ours });
      } catch (error) {
        if (error instanceof Unavailable) await daemon?.renew();
        throw error;
      }
    });
  } catch (error) {
    client.close();
    await daemon?.stop({ keepComputers: true });
    throw error;
  }
  return {
    engine,
    place,
    daemon,
    async stop({ keepComputers }) {
      if (daemon !== undefined && !keepComputers) await endFrozen(engine, say);
      await engine.close();
      await daemon?.stop({ keepComputers });
    },
    async purge() {
      await engine.close();
      await daemon?.purge();
    },
  };
}

/** A frozen guest cannot shut down, and Incus would give it half a minute to. */
async function endFrozen(engine: IncusEngine, say: (line: string) => void): Promise<void> {
  const context = { signal: AbortSignal.timeout(frozenMs) };
  try {
    const frozen = (await engine.list(context)).filter(({ status }) => status === 'frozen');
    await Promise.all(frozen.map(({ id }) => engine.stop(context, id, true)));
  } catch (error) {
    say(`Suspended computers could not be ended in order: ${String(error)}`);
  }
}
