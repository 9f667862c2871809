// The events of one computer, without an agent or an engine.

import type { Clock } from '../../packages/host/guest/executions.ts';
import { Events } from '../../packages/host/events/events.ts';
import { Roster } from '../../packages/host/roster.ts';

export const computer = 'vm-0123456789ab';

export function oneComputer(clock: Clock): Events {
  const roster = new Roster();
  const links = {
    whenConnected: () => new Promise<void>(() => {}),
    watchTree: async () => ({ ok: false, failure: 'no_agent', message: '' }) as const,
    ready: () => true,
  };
  const events = new Events({ roster, links, clock });
  roster.add(computer, computer, 'running');
  events.found(computer, 'running');
  return events;
}
