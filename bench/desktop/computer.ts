// The events of one computer, without an agent or an engine.

import type { Clock } from '../../packages/host/guest/executions.ts';
import { Events, type Subscription } from '../../packages/host/events/events.ts';
import { Roster } from '../../packages/host/roster.ts';

export const computer = 'vm-0123456789ab';

export function oneComputer(clock?: Clock): Events {
  const roster = new Roster();
  const links = {
    whenConnected: () => new Promise<void>(() => {}),
    watchTree: async () => ({ ok: false, failure: 'no_agent', message: '' }) as const,
    ready: () => true,
  };
  const events = new Events({ roster, links, ...(clock && { clock }) });
  roster.add(computer, computer, 'running');
  events.found(computer, 'running');
  return events;
}

export function listen(
  events: Events,
  send: (text: string) => boolean,
  close: () => void = () => {},
  since?: string,
): Subscription {
  const request = { computer, account: 'acc', watches: [], since };
  const subscribed = events.subscribe(request, { send, close });
  if (!subscribed.ok) throw new Error(subscribed.refusal.message);
  subscribed.subscription.begin();
  return subscribed.subscription;
}
