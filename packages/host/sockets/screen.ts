// The live desktop: RFB between a viewer and the guest's VNC server. Whoever controls is passed through;
// whoever watches is kept from everything but watching (wire-guest section 10).

import type { WebSocket } from 'ws';
import type { Channel } from '@cubicle/contract/guest/channel.ts';
import { limits } from '@cubicle/contract/limits.ts';
import { closeCodes } from '@cubicle/contract/sockets.ts';
import type { GuestLinks } from '../guest/links.ts';
import type { Roster } from '../roster.ts';
import { Turns } from '../turns.ts';
import type { SocketCall, SocketKind } from './kind.ts';
import { type Conversation, controlling, watching } from './rfb/client.ts';
import { greetServer, ViewerGreeting } from './rfb/greeting.ts';
import { shown } from './rfb/server.ts';
import { Sieve, Unreadable } from './rfb/sieve.ts';

export function screenKind(links: GuestLinks, roster: Roster): SocketKind {
  return {
    most: limits.screensPerComputer,
    async check(_context, { computer, instance }) {
      if (links.ready(instance)) return undefined;
      if (links.connected(instance)) {
        return { failure: 'desktop_absent', error: 'The desktop is not up.' };
      }
      const failure = roster.isStarting(computer) ? 'starting' : 'silent';
      return { failure, error: 'The computer’s agent is not connected.' };
    },
    open: (call, socket) => void show(links, roster, call, socket),
  };
}

async function show(
  links: GuestLinks,
  roster: Roster,
  { computer, instance, control }: SocketCall,
  socket: WebSocket,
): Promise<void> {
  const life = new AbortController();
  socket.pause();
  try {
    const result = await greetings.take(instance, () => meet(links, instance, life));
    if (!result.ok) return socket.close(closeCodes.tryAgain, result.failure);
    const { channel } = result;
    socket.once('close', () => life.abort(new Error('the viewer is gone')));
    if (socket.readyState !== socket.OPEN) return life.abort(new Error('the viewer is gone'));
    const sides = control
      ? controlled(() => roster.use(computer)())
      : watched({ pixels: undefined, asked: false });
    const greeting = new ViewerGreeting((bytes) => socket.send(bytes));
    const sift = (chunk: Buffer) => {
      const rest = greeting.take(chunk);
      return rest.length === 0 ? [] : sides.fromViewer(rest);
    };
    listen(socket, channel, sift, (error) => endFor(socket, error));
    socket.resume();
    await tell(socket, channel, sides.fromServer);
    socket.close(closeCodes.tryAgain, 'the desktop ended');
  } catch (error) {
    endFor(socket, error);
  }
}

/** One at a time, and to its end even if the viewer has gone: the VNC server counts those that break off. */
const greetings = new Turns();
const greetingMs = 5_000;

async function meet(
  links: GuestLinks,
  instance: string,
  life: AbortController,
): ReturnType<GuestLinks['screen']> {
  const late = setTimeout(() => life.abort(new Error('the VNC server is silent')), greetingMs);
  try {
    const result = await links.screen({ signal: life.signal }, instance);
    if (result.ok) await greetServer(result.channel);
    return result;
  } finally {
    clearTimeout(late);
  }
}

interface Sides {
  readonly fromViewer: (chunk: Buffer) => Buffer[];
  readonly fromServer: (chunk: Buffer) => Buffer[];
}

function watched(conversation: Conversation): Sides {
  const [viewer, server] = [new Sieve(watching(conversation)), new Sieve(shown(conversation))];
  return {
    fromViewer: (chunk) => viewer.feed(chunk),
    fromServer: (chunk) => server.feed(chunk),
  };
}

/** Nothing is changed; it is only looked at for whether somebody acts, which is use of the computer. */
function controlled(used: () => void): Sides {
  const viewer = new Sieve(controlling(used));
  let readable = true;
  return {
    fromViewer(chunk) {
      try {
        if (readable) viewer.feed(chunk);
      } catch {
        readable = false;
      }
      if (!readable) used();
      return [chunk];
    },
    fromServer: (chunk) => [chunk],
  };
}

/** One message at a time: the socket rests until the guest has taken what came. */
function listen(
  socket: WebSocket,
  channel: Channel,
  sift: (chunk: Buffer) => Buffer[],
  give: (error: unknown) => void,
): void {
  let last = Promise.resolve();
  let waiting = 0;
  const take = async (bytes: Buffer) => {
    for (const piece of sift(bytes)) await channel.send(0, piece);
    waiting -= 1;
    if (waiting === 0) socket.resume();
  };
  socket.on('message', (data, isBinary) => {
    if (!isBinary) return give(new Unreadable('RFB comes in binary messages'));
    waiting += 1;
    socket.pause();
    last = last.then(() => take(data as Buffer)).catch(give);
  });
}

/** As fast as the viewer reads: what is in between is one piece and one window of the channel. */
async function tell(
  socket: WebSocket,
  channel: Channel,
  sift: (chunk: Buffer) => Buffer[],
): Promise<void> {
  for (let piece = await channel.receive(); piece; piece = await channel.receive()) {
    for (const bytes of sift(piece.bytes)) {
      await new Promise<void>((sent) => socket.send(bytes, () => sent()));
    }
  }
}

function endFor(socket: WebSocket, error: unknown): void {
  const refused = error instanceof Unreadable;
  socket.close(refused ? closeCodes.refused : closeCodes.tryAgain, refused ? error.message : '');
  // Nothing more is read of whoever breaks the rules, not even its answer to the close.
  if (refused) setTimeout(() => socket.terminate(), 1_000).unref();
}
