// What Prometheus reads at /metrics.

import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Database } from '../db/database.ts';

export class HttpMetrics {
  readonly #registry = new Registry();
  readonly #answers: Counter<'route' | 'method' | 'status'>;
  readonly #seconds: Histogram<'route'>;
  readonly #attempts: Histogram<'outcome'>;

  constructor() {
    collectDefaultMetrics({ register: this.#registry, prefix: 'cubicle_' });
    this.#answers = new Counter({
      name: 'cubicle_http_answers_total',
      help: 'Answers by route, method and status.',
      labelNames: ['route', 'method', 'status'],
      registers: [this.#registry],
    });
    this.#seconds = new Histogram({
      name: 'cubicle_http_answer_seconds',
      help: 'Time from the request’s headers to the answer.',
      labelNames: ['route'],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5],
      registers: [this.#registry],
    });
    this.#attempts = new Histogram({
      name: 'cubicle_webhook_attempt_seconds',
      help: 'Attempts to deliver to webhooks by their outcome, and the time they took.',
      labelNames: ['outcome'],
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10],
      registers: [this.#registry],
    });
  }

  attempted(outcome: string, seconds: number): void {
    this.#attempts.observe({ outcome }, seconds);
  }

  answered(route: string, method: string, status: number, ms: number): void {
    this.#answers.inc({ route, method, status });
    this.#seconds.observe({ route }, ms / 1_000);
  }

  watchDatabase(database: Database): void {
    const states = { idle: () => database.idle, open: () => database.total };
    const gauge: Gauge<'state'> = new Gauge({
      name: 'cubicle_database_connections',
      help: 'Connections of this process to PostgreSQL, and calls waiting for one.',
      labelNames: ['state'],
      registers: [this.#registry],
      collect() {
        for (const [state, read] of Object.entries(states)) gauge.set({ state }, read());
        gauge.set({ state: 'waiting' }, database.waiting);
      },
    });
  }

  async text(): Promise<string> {
    return this.#registry.metrics();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }
}
