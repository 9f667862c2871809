import { Refusal } from '@cubicle/contract/errors.ts';
import { publicSockets } from '@cubicle/contract/sockets.ts';
import type { socketRoutes } from '@cubicle/contract/resources/sockets.ts';
import type { Handlers } from './handler.ts';

/** For whoever comes with an API key: the same words for every id (Part 4, Event socket). */
export function socketHandlers(): Handlers<typeof socketRoutes> {
  const guide = (field: string) => async () => {
    throw new Refusal('socket_address', { field });
  };
  return {
    openScreen: guide(publicSockets.vnc.field),
    openEvents: guide(publicSockets.events.field),
    openTerminal: guide(publicSockets.terminal.field),
  };
}
