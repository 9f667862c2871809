// Reads documents without holding up anything else: small ones at once, large ones one after the other in a
// thread of their own, which has so much time and memory and no more.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Refusal } from '@cubicle/contract/errors.ts';
import { readDocument, type Reading } from './read.ts';

/** Most documents. Read in 2 to 4 ms, a hostile one of this size in 30. */
const smallBytes = 4 * 1024;
/** 200 KB of steps take 40 ms, the worst of 1 MiB a second. */
const patienceMs = 10_000;
/** The thread is up at once, and on a machine that is out of breath after 5 s. */
const startMs = 60_000;
const memoryMb = 256;
const mostWaiting = 32;

export class DocumentReader {
  #worker: Worker | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  async read(bytes: Buffer): Promise<Reading> {
    if (bytes.length <= smallBytes) return readDocument(bytes);
    if (this.#waiting >= mostWaiting) throw new Refusal('documents_busy');
    this.#waiting += 1;
    const turn = this.#turn.then(() => this.#ask(bytes));
    this.#turn = turn.catch(() => {});
    try {
      return await turn;
    } finally {
      this.#waiting -= 1;
    }
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
    this.#worker = undefined;
  }

  async #ask(bytes: Buffer): Promise<Reading> {
    const worker = await this.#thread();
    const patience = AbortSignal.timeout(patienceMs);
    worker.ref();
    try {
      // eslint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      worker.postMessage(bytes);
      // Rejects when the thread ends instead, for want of memory too.
      const [reading] = (await once(worker, 'message', { signal: patience })) as [Reading];
      return reading;
    } catch (error) {
      await this.close();
      const spent = patience.aborted ? 'time' : isOutOfMemory(error) ? 'memory' : undefined;
      if (spent === undefined) throw error;
      return {
        valid: false,
        problems: [`document takes too much ${spent} to read`],
        ref: undefined,
      };
    } finally {
      worker.unref();
    }
  }

  /** Up and waiting. The time that it takes to come up is no document's. */
  async #thread(): Promise<Worker> {
    if (this.#worker !== undefined) return this.#worker;
    const worker = startWorker();
    this.#worker = worker;
    try {
      await once(worker, 'message', { signal: AbortSignal.timeout(startMs) });
      return worker;
    } catch (cause) {
      await this.close();
      throw Object.assign(new Refusal('documents_busy'), { cause });
    }
  }
}

function startWorker(): Worker {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
  });
  // Whoever waits for it hears of its end; between two documents nobody does.
  worker.on('error', () => {});
  return worker;
}

function isOutOfMemory(error: unknown): boolean {
  return (error as { code?: string }).code === 'ERR_WORKER_OUT_OF_MEMORY';
}
