// The WebSockets of a computer: wire-guest section 10, Part 4 Terminal socket, Part 6.2. They are opened with
// the credential in their address; these routes are what an API key finds there instead.

import { z } from 'zod';
import type { ErrorName } from '../errors.ts';
import { costs } from '../limits.ts';
import { defineRoutes } from '../route.ts';

/** What an upgrade may be refused with, over plain HTTP. */
const socketErrors: readonly ErrorName[] = [
  'socket_unknown',
  'socket_limit',
  'computer_not_running',
  'computer_suspended_here',
  'computer_starting',
  'desktop_absent',
  'guest_busy',
  'guest_silent',
  'host_unreachable',
];

const socket = {
  method: 'GET',
  role: 'viewer',
  reach: 'scope',
  cost: costs.socketAddress,
  answer: { status: 101, schema: z.any(), mediaType: 'application/octet-stream' },
  errors: ['socket_address', ...socketErrors],
} as const;

const opened =
  'Opened with the credential in its address, and with no API key; a key alone is answered 400, whatever the id. It is cut when the credential is replaced or its holder loses the right to it.';

export const socketRoutes = defineRoutes({
  openScreen: {
    ...socket,
    path: '/computers/{id}/vnc',
    summary: 'Open the desktop (WebSocket)',
    prose: `RFB 3.8 in binary messages, at \`url\` to control and at \`view_url\` to watch: a watcher’s input is dropped and the clipboard kept from it. ${opened} A page for people is at \`embed_url\`; \`/desktop/{id}#token=\` with \`token\` is one that controls.`,
    source: 'wire-guest, section 10',
  },
  openEvents: {
    ...socket,
    path: '/computers/{id}/events',
    summary: 'Open the event stream (WebSocket)',
    prose: `JSON text frames, at \`events_url\`. ${opened}`,
    source: 'Part 6.2',
  },
  openTerminal: {
    ...socket,
    path: '/computers/{id}/terminal',
    summary: 'Open a terminal (WebSocket)',
    prose: `Binary frames both ways, at \`terminal_url\`. ${opened}`,
    source: 'Part 4, Terminal socket',
  },
});
