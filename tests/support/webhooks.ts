// A service whose webhooks reach receivers on loopback, by a clock of the test's own.

import { writeFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Answer, Client } from './client.ts';
import { authority } from './receiver.ts';
import { startService, type TestOptions, type TestService } from './service.ts';

/** A clock that goes on by itself and can be put forward. */
class TestClock {
  #ahead = 0;

  readonly date = () => new Date(Date.now() + this.#ahead);

  forward(ms: number): void {
    this.#ahead += ms;
  }
}

export interface WebhookGround {
  readonly service: TestService;
  readonly clock: TestClock;
  /** What a process of its own must be told to reach receivers. */
  readonly settings: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

export async function webhookGround(options: TestOptions = {}): Promise<WebhookGround> {
  const folder = await mkdtemp(join(tmpdir(), 'cubicle-webhooks-'));
  const ca = join(folder, 'authority.pem');
  await writeFile(ca, authority.cert);
  const settings = { CUBICLE_WEBHOOK_ALLOW: '127.0.0.0/8', CUBICLE_WEBHOOK_CA: ca };
  const clock = new TestClock();
  const service = await startService({
    ...options,
    settings: { ...settings, ...options.settings },
    webhooks: { date: clock.date, ...options.webhooks },
  });
  return {
    service,
    clock,
    settings,
    async stop() {
      await service.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

// eslint-disable-next-line typescript/no-explicit-any -- tests look into answers of any shape
type Body = any;

export async function subscribed(as: Client, url: string, wish: object = {}): Promise<Body> {
  return good(await as.post('/webhooks', { url, ...wish }), 201);
}

export async function deliveriesOf(as: Client, id: string): Promise<Body[]> {
  return good(await as.get(`/webhooks/${id}/deliveries`), 200);
}

export async function tested(as: Client, id: string): Promise<Body> {
  return good(await as.send('POST', `/webhooks/${id}/test`), 202);
}

/** The body of an answer that must have this status. */
export function good(answer: Answer, status = 200): Body {
  if (answer.status !== status) throw new Error(`${answer.status} ${answer.text}`);
  return answer.body;
}
