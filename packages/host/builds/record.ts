// How one build is going, as the control plane hears of it: every change is a move, and a listener waits for
// the next.

import { setTimeout as pause } from 'node:timers/promises';
import type { HostBuildProgress } from '@cubicle/contract/host/builds.ts';

type Phase = HostBuildProgress['phase'];
type Step = HostBuildProgress['steps'][number];

/** What a guest or a document can make them: told again and again, so short. */
const longestNote = 300;
/** A listener asks again after this at the latest. */
const longestWaitMs = 60_000;

export class BuildRecord {
  readonly id: string;
  readonly #steps: Step[];
  #status: HostBuildProgress['status'] = 'running';
  #phase: Phase = 'planning';
  #note = '';
  #step = 0;
  #error: string | undefined;
  #moves = 0;
  #updatedAt = new Date();
  #news = Promise.withResolvers<void>();

  constructor(id: string, steps: number) {
    this.id = id;
    this.#steps = Array.from({ length: steps }, () => ({ status: 'pending' }));
  }

  /** One that an earlier daemon made: nothing but its outcome is known. */
  static held(id: string, at: Date): BuildRecord {
    const record = new BuildRecord(id, 0);
    record.#status = 'succeeded';
    record.#phase = 'unknown';
    record.#updatedAt = at;
    return record;
  }

  get status(): HostBuildProgress['status'] {
    return this.#status;
  }

  enter(phase: Phase, note: string): void {
    this.#phase = phase;
    this.#say(note);
  }

  /** Steps count from 1. */
  began(n: number, note: string): void {
    this.#step = n;
    this.#steps[n - 1] = { status: 'running', started_at: new Date().toISOString() };
    this.#say(note);
  }

  did(n: number): void {
    this.#end(n, 'done');
    this.#move();
  }

  succeeded(note: string): void {
    this.#status = 'succeeded';
    this.enter('published', note);
  }

  /** The step under way is the one that failed, and none after it will be done. */
  failed(note: string, error: string): void {
    this.#steps.forEach(({ status }, i) => {
      if (status === 'running') this.#end(i + 1, 'failed');
      if (status === 'pending') this.#steps[i] = { status: 'skipped' };
    });
    this.#status = 'failed';
    this.#error = error;
    this.enter('failed', note);
  }

  tell(): HostBuildProgress {
    return {
      id: this.id,
      moves: this.#moves,
      status: this.#status,
      phase: this.#phase,
      step: this.#step,
      steps: this.#steps.map((step) => ({ ...step })),
      note: this.#note,
      ...(this.#error !== undefined && { error: this.#error }),
      updated_at: this.#updatedAt.toISOString(),
    };
  }

  /** Returns once it has moved beyond `after`, or after this time. */
  async moved(after: number, ms: number, signal: AbortSignal): Promise<void> {
    if (this.#moves > after) return;
    const over = new AbortController();
    const wait = Math.min(ms, longestWaitMs);
    const patience = pause(wait, undefined, { signal: AbortSignal.any([over.signal, signal]) });
    await Promise.race([this.#news.promise, patience.catch(() => {})]);
    over.abort();
  }

  #end(n: number, status: Step['status']): void {
    this.#steps[n - 1] = { ...this.#steps[n - 1], status, finished_at: new Date().toISOString() };
  }

  #say(note: string): void {
    this.#note = note.slice(0, longestNote);
    this.#move();
  }

  #move(): void {
    this.#moves += 1;
    this.#updatedAt = new Date();
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }
}
