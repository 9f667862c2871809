// `cubicle host`: runs a host daemon alone. `cubicle start` runs one as its child and watches over it.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type RunningHost, startHost } from '@cubicle/host/main.ts';
import { readSettings } from '@cubicle/server/settings.ts';
import { checkout } from './checkout.ts';

/** What a host daemon tells the process that runs it. */
export type HostNews =
  | { readonly ready: RunningHost['row'] }
  | { readonly say: string }
  | { readonly failed: string };

export async function runHost(): Promise<void> {
  const tell = (news: HostNews) => {
    if (process.send !== undefined) process.send(news);
    else if ('say' in news) console.log(news.say);
    else if ('failed' in news) console.error(news.failed);
    else console.log(`The host ${news.ready.id} is ready.`);
  };
  const settings = readSettings(process.env, checkout);
  if (settings.engine === 'none') {
    tell({ failed: 'CUBICLE_ENGINE is none: there is nothing for a host to run.' });
    process.exitCode = 1;
    return;
  }
  const { engine, dataDir, cacheDir, pool, diskGb } = settings;
  const ending = new AbortController();
  let host: RunningHost | undefined;
  const stop = () => {
    ending.abort();
    void host?.stop().finally(() => process.exit(0));
  };
  process.once('SIGTERM', stop).once('SIGINT', stop).once('disconnect', stop);
  try {
    const wish = { engine, dataDir, cacheDir, pool, diskGb };
    host = await startHost(wish, (say) => tell({ say }), { signal: ending.signal });
  } catch (error) {
    if (ending.signal.aborted) process.exit(0);
    tell({ failed: error instanceof Error ? error.message : String(error) });
    process.exit(1);
  }
  if (ending.signal.aborted) stop();
  else tell({ ready: host.row });
}

export interface WatchedHost {
  /** Whether it ever was ready. */
  readonly served: boolean;
  stop(): Promise<void>;
}

const restartMs = 1_000;

/** Runs the daemon and starts it again when it ends; `hear` is told of every start. */
export function watchHost(hear: (news: HostNews) => void): WatchedHost {
  const main = fileURLToPath(new URL('./main.ts', import.meta.url));
  let child: ChildProcess | undefined;
  let stopped = false;
  let served = false;
  let wait: NodeJS.Timeout | undefined;
  function begin(): void {
    let hopeless = false;
    child = fork(main, ['host'], { detached: true });
    child.on('message', (news: HostNews) => {
      if ('failed' in news) hopeless = true;
      if ('ready' in news) served = true;
      hear(news);
    });
    child.on('exit', () => {
      // One that could not start says why and is not tried again; one that died is.
      if (!stopped && !hopeless) wait = setTimeout(begin, restartMs);
    });
  }
  begin();
  return {
    get served() {
      return served;
    },
    async stop() {
      stopped = true;
      clearTimeout(wait);
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}
