// The types of events that a computer's stream knows (Part 6.2), by who can see what they tell.

/** Seen by the host itself: also those that `GET /computers/{id}/signals` tells. */
export const daemonEvents = [
  'process.exited',
  'computer.started',
  'computer.stopped',
  'computer.suspended',
  'computer.idle',
] as const;

/** Told by the agent, as long as one is connected. */
export const agentEvents = ['computer.ready', 'file.changed'] as const;

/** Told by the agent's watcher of the desktop, as long as that lives. */
export const desktopEvents = [
  'window.opened',
  'window.focused',
  'window.blurred',
  'window.closed',
  'clipboard.changed',
] as const;

export type EventType =
  | (typeof daemonEvents)[number]
  | (typeof agentEvents)[number]
  | (typeof desktopEvents)[number];

/** What a webhook can be subscribed to (Part 2 Webhook): all but files, which only a stream nominates. */
export const webhookEvents = [
  'window.opened',
  'window.closed',
  'window.focused',
  'window.blurred',
  'clipboard.changed',
  'process.exited',
  'computer.idle',
  'computer.ready',
  'computer.started',
  'computer.stopped',
  'computer.suspended',
] as const satisfies readonly EventType[];
