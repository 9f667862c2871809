// The event stream of a computer on a WebSocket (Part 6.2): text frames from us, nothing from the caller.

import type { WebSocket } from 'ws';
import { closeCodes } from '@cubicle/contract/sockets.ts';
import type { Events, Subscription } from '../events/events.ts';
import type { SocketCall, SocketKind, SocketRefusal } from './kind.ts';

/** What may wait in a socket before it counts as full: a hello with 200 windows fits. */
const mostWaiting = 512 * 1024;

interface Opening {
  readonly subscription: Subscription;
  socket: WebSocket | undefined;
}

export function eventsKind(events: Events): SocketKind {
  const openings = new WeakMap<SocketCall, Opening>();
  return {
    lasting: true,
    async check(_context, call) {
      if (!call.control)
        return refusal({ status: 409, message: 'A watching credential opens no events.' });
      const opening: { -readonly [Field in keyof Opening]?: Opening[Field] } = {};
      const result = events.subscribe(
        {
          computer: call.computer,
          account: call.account,
          since: call.query.get('since') ?? undefined,
          watches: call.query.getAll('watch'),
        },
        {
          send: (frame) => sent(opening as Opening, frame),
          close: (detail) => opening.socket?.close(closeCodes.done, short(detail)),
        },
      );
      if (!result.ok) return refusal(result.refusal);
      opening.subscription = result.subscription;
      openings.set(call, opening as Opening);
      return undefined;
    },
    abandon: (call) => openings.get(call)?.subscription.end(),
    open(call, socket) {
      const opening = openings.get(call);
      if (opening === undefined) return socket.terminate();
      opening.socket = socket;
      socket.on('close', () => opening.subscription.end());
      // Nothing is ever sent to it; whoever does is not listened to.
      socket.on('message', () => {});
      opening.subscription.begin();
    },
  };
}

function sent({ socket, subscription }: Opening, frame: string): boolean {
  if (socket === undefined) return true;
  const takesMore = socket.bufferedAmount + frame.length < mostWaiting;
  // When the one that filled it is out, all before it are.
  if (takesMore) socket.send(frame);
  else socket.send(frame, () => subscription.drained());
  return takesMore;
}

function refusal(stated: {
  readonly status: number;
  readonly reason?: string;
  readonly resumeRequired?: true;
  readonly message: string;
}): SocketRefusal {
  const { status, reason, resumeRequired, message } = stated;
  return {
    status,
    error: message,
    ...(reason !== undefined && { reason }),
    ...(resumeRequired && { resume_required: true as const }),
  };
}

/** The reason of a close has 123 bytes. */
function short(detail: string): string {
  return Buffer.byteLength(detail) <= 123 ? detail : '';
}
