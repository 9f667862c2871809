/** Runs the Incus of one data folder: starts or adopts it, brings it back when it dies, ends it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { IncusClient } from './client.ts';
import { findProgram, programPath } from './programs.ts';
import { openLog, readFrom, sizeOf, trimLog } from './log-file.ts';
import { type OwnerLock, takeOwnerLock } from './owner-lock.ts';
import { isUsurped, isWreck, markProven, mountAlias, type Place } from './place.ts';
import { birthOf, endNameServers, endProcess, findDaemon, killMs } from './processes.ts';
import { erase, sweep } from './sweep.ts';

/** Ready after 0.6 s the first time and 1.9 s with state, on two busy cores; the rest is for slow disks. */
const readyMs = 60_000;
const pollMs = 50;
const firstWordMs = 3_000;
/** How soon an end that we did not cause is seen. */
const watchMs = 250;
const trimMs = 60_000;
const backoffMs = { first: 100, most: 15_000 };
/** A daemon that lasted this long has started well: the next end is a new trouble. */
const healthyMs = 60_000;
/** Its own shutdown gives all guests 20 s at once. */
const endMs = { keep: 20_000, stop: 60_000, kill: killMs };
const ownerWaitMs = 10_000;

/** Nothing listens there: the daemon asks nothing of the internet, not even at its first start. */
export const deadProxy = 'http://127.0.0.1:9';

export interface DaemonOptions {
  readonly say: (line: string) => void;
  readonly signal?: AbortSignal;
  /** How long to wait for another owner of the folder to end. */
  readonly waitMs?: number | undefined;
}

export class IncusDaemon {
  readonly place: Place;
  readonly #say: (line: string) => void;
  readonly #ending = new AbortController();
  #lock: OwnerLock | undefined;
  #pid = 0;
  #birth: string | undefined;
  #watch: Promise<void> = Promise.resolve();
  #stopped: Promise<void> | undefined;

  private constructor(place: Place, say: (line: string) => void) {
    this.place = place;
    this.#say = say;
  }

  /** Returns when it answers. */
  static async open(place: Place, options: DaemonOptions): Promise<IncusDaemon> {
    const daemon = new IncusDaemon(place, options.say);
    daemon.#lock = await takeOwnerLock(place, options.waitMs ?? ownerWaitMs);
    try {
      if (await isWreck(place)) await erase(place);
      else if (await isUsurped(place)) await sweep(place);
      await mountAlias(place);
      await daemon.#start(options.signal ?? daemon.#ending.signal);
      await markProven(place);
    } catch (error) {
      await daemon.#lock.release();
      throw error;
    }
    daemon.#watch = daemon.#keep();
    return daemon;
  }

  get pid(): number {
    return this.#pid;
  }

  /** Ends the daemon. Computers that are kept go on running, and the next `open` finds them. */
  stop(options: { keepComputers: boolean }): Promise<void> {
    this.#stopped ??= this.#stop(options.keepComputers);
    return this.#stopped;
  }

  async #stop(keepComputers: boolean): Promise<void> {
    this.#ending.abort();
    await this.#watch;
    const pid = await findDaemon(this.place);
    // As for a power failure: it stops its guests politely, all at once, and takes down mounts and bridge.
    const [signal, waitMs] = keepComputers
      ? (['SIGTERM', endMs.keep] as const)
      : (['SIGPWR', endMs.stop] as const);
    if (pid !== undefined) {
      await endProcess(pid, [
        [signal, waitMs],
        ['SIGKILL', endMs.kill],
      ]);
    }
    if (!keepComputers) await sweep(this.place);
    await this.#lock?.release();
  }

  /** Ends everything at once and leaves nothing: no computer, no image, no mount, no interface. */
  async purge(): Promise<void> {
    this.#ending.abort();
    await this.#watch;
    await erase(this.place);
    await this.#lock?.release();
  }

  /** Ends the daemon and lets it come back, as after a death of its own. Containers do not notice. */
  async renew(): Promise<void> {
    this.#say('Restarting Incus');
    await endProcess(this.#pid, [
      ['SIGTERM', endMs.keep],
      ['SIGKILL', endMs.kill],
    ]);
  }

  async #start(signal: AbortSignal): Promise<void> {
    const running = await findDaemon(this.place);
    if (running !== undefined) {
      try {
        await this.#untilReady(running, signal);
        await this.#take(running);
        return;
      } catch (error) {
        signal.throwIfAborted();
        this.#say(`The Incus that was running (pid ${running}) does not answer; ending it`);
        await endProcess(running, [['SIGKILL', endMs.kill]]);
        if ((await birthOf(running)) !== undefined) throw error;
      }
    }
    await endNameServers(this.place);
    await trimLog(this.place.log);
    const logStart = await sizeOf(this.place.log);
    const child = await this.#spawn();
    const pid = child.pid;
    if (pid === undefined) throw new Error('incusd could not be started');
    await this.#take(pid);
    try {
      await this.#untilReady(pid, signal);
    } catch (cause) {
      await endProcess(pid, [['SIGKILL', endMs.kill]]);
      signal.throwIfAborted();
      const lines = (await readFrom(this.place.log, logStart)).trim().split('\n');
      const reason =
        lines.findLast((line) => /level=(error|fatal)|^Error/.test(line)) ?? lines.at(-1);
      throw new Error(`Incus could not start: ${reason}; the whole log is ${this.place.log}`, {
        cause,
      });
    }
  }

  async #take(pid: number): Promise<void> {
    this.#pid = pid;
    this.#birth = await birthOf(pid);
  }

  async #spawn(): Promise<ChildProcess> {
    const file = await findProgram('incusd');
    if (file === undefined) throw new Error('incusd is not installed');
    const log = openLog(this.place.log);
    try {
      const child = spawn(file, ['--group', 'root'], {
        cwd: '/',
        // A file and no pipe: the daemon outlives a killed owner and must not lose its log.
        stdio: ['ignore', log.fd, log.fd],
        // Its own process group: Ctrl-C reaches only us, and we end the daemon in order.
        detached: true,
        env: {
          INCUS_DIR: this.place.alias,
          PATH: programPath.join(':'),
          LC_ALL: 'C.UTF-8',
          HTTP_PROXY: deadProxy,
          HTTPS_PROXY: deadProxy,
        },
      });
      // Without a pid the caller says so.
      child.once('error', () => {});
      child.unref();
      return child;
    } finally {
      log.close();
    }
  }

  async #untilReady(pid: number, signal: AbortSignal): Promise<void> {
    const client = new IncusClient({ kind: 'unix', path: this.place.socket });
    const began = performance.now();
    let spoken = false;
    try {
      for (;;) {
        signal.throwIfAborted();
        const context = { signal: AbortSignal.any([signal, AbortSignal.timeout(5_000)]) };
        const ready = await client.get(context, '/internal/ready').then(
          () => true,
          () => false,
        );
        if (ready) return;
        const waited = performance.now() - began;
        if ((await birthOf(pid)) === undefined) throw new Error('incusd ended at once');
        if (waited > readyMs)
          throw new Error(`incusd does not become ready in ${readyMs / 1000} s`);
        if (waited > firstWordMs && !spoken) {
          this.#say('Waiting for Incus to become ready');
          spoken = true;
        }
        await pause(pollMs, undefined, { signal });
      }
    } finally {
      client.close();
    }
  }

  /** Until the end: a daemon that dies is started again, ever more slowly. Containers do not notice. */
  async #keep(): Promise<void> {
    const { signal } = this.#ending;
    let delayMs = backoffMs.first;
    let trimmed = performance.now();
    let began = performance.now();
    while (!signal.aborted) {
      if (this.#birth !== undefined && (await birthOf(this.#pid)) === this.#birth) {
        if (performance.now() - trimmed > trimMs) {
          trimmed = performance.now();
          await trimLog(this.place.log).catch(() => {});
        }
        await pause(watchMs, undefined, { signal, ref: false }).catch(() => {});
        continue;
      }
      if (performance.now() - began > healthyMs) delayMs = backoffMs.first;
      this.#say('Incus ended by itself; starting it again');
      await pause(delayMs, undefined, { signal, ref: false }).catch(() => {});
      delayMs = Math.min(delayMs * 2, backoffMs.most);
      began = performance.now();
      await this.#start(signal).catch((error: unknown) => {
        if (!signal.aborted) this.#say(String(error));
      });
    }
  }
}
