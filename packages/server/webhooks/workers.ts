// What keeps webhooks going in a server process: the reader of events and the maker of deliveries.

import { limits } from '@cubicle/contract/limits.ts';
import type { Database } from '../db/database.ts';
import { forgetMoves } from '../db/event-intake.ts';
import { trimDeliveries } from '../db/webhook-deliveries.ts';
import { removeRemains } from '../db/webhooks.ts';
import type { Fleet } from '../hosts/fleet.ts';
import type { Keyring } from '../keyring.ts';
import type { AddressCheck } from './address.ts';
import { Sender } from './attempt.ts';
import { Dispatcher } from './dispatcher.ts';
import { Intake } from './intake.ts';

export interface WorkerParts {
  readonly database: Database;
  readonly fleet: Fleet;
  readonly check: AddressCheck;
  /** Without it nothing can be signed: other processes deliver. */
  readonly keyring: Keyring | undefined;
  /** PEM. */
  readonly authority: string | undefined;
  readonly waits: readonly number[];
  readonly date: () => Date;
  readonly log: (problem: unknown) => void;
  readonly count: (outcome: string, seconds: number) => void;
}

const dayMs = 86_400_000;
/** What one round removes at most, so that others get their turn. */
const mostRounds = 20;

export class WebhookWorkers {
  readonly #parts: WorkerParts;
  readonly #intake: Intake;
  readonly #sender: Sender;
  readonly #dispatcher: Dispatcher | undefined;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
    const { keyring, check, date, authority } = parts;
    this.#intake = new Intake(parts);
    this.#sender = new Sender({ check, date, authority });
    if (keyring !== undefined) {
      this.#dispatcher = new Dispatcher({ ...parts, keyring, sender: this.#sender });
    }
  }

  start(): void {
    this.#intake.start();
    this.#dispatcher?.start();
  }

  /** As the queue announces it: nothing for new deliveries, or the subscription that changed. */
  heard(changed: string): void {
    this.#dispatcher?.wake(changed);
  }

  /** Part 4, Webhooks 10 and 13. */
  async trim(): Promise<void> {
    const { database, date } = this.#parts;
    const before = new Date(date().getTime() - limits.webhookRetentionDays * dayMs);
    for (let n = 0; n < mostRounds && (await trimDeliveries(database, before)); n += 1);
    const more = () => database.transaction((tx) => removeRemains(tx));
    for (let n = 0; n < mostRounds && (await more()); n += 1);
    await forgetMoves(database);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#intake.stop(), this.#dispatcher?.stop()]);
    this.#sender.close();
  }
}
