// A terminal on a WebSocket (Part 4, Terminal socket): binary frames are its bytes, text frames are about it.

import type { WebSocket } from 'ws';
import { readTerminalQuery } from '@cubicle/contract/terminal.ts';
import type { Roster } from '../roster.ts';
import type { Attachment } from '../terminal/attachment.ts';
import type { Terminals } from '../terminal/terminals.ts';
import type { SocketCall, SocketKind, SocketRefusal } from './kind.ts';

/** What may wait in a socket before its shell is held back. */
const mostWaiting = 1024 * 1024;

const badQuery: SocketRefusal = {
  status: 400,
  error:
    '`session` is a name of letters, digits, dots, dashes and underscores; `cols` and `rows` are numbers.',
};

export function terminalKind(terminals: Terminals, roster: Roster): SocketKind {
  const attachments = new WeakMap<SocketCall, Attachment>();
  return {
    async check(context, call) {
      if (!call.control) return { status: 409, error: 'A watching credential opens no terminal.' };
      const asked = readTerminalQuery(call.query);
      if (asked === undefined) return badQuery;
      const result = await terminals.attach(context, call.instance, asked);
      if (!result.ok) {
        const { status, reason, resumeRequired, message } = result;
        return {
          status,
          error: message,
          ...(reason !== undefined && { reason }),
          ...(resumeRequired && { resume_required: true as const }),
        };
      }
      attachments.set(call, result.attachment);
      return undefined;
    },
    abandon: (call) => attachments.get(call)?.leave(),
    open(call, socket) {
      const attachment = attachments.get(call);
      if (attachment === undefined) return socket.terminate();
      join(attachment, socket, () => roster.use(call.computer)());
    },
  };
}

function join(attachment: Attachment, socket: WebSocket, used: () => void): void {
  socket.on('message', (data, isBinary) => {
    const bytes = data as Buffer;
    if (!isBinary) return attachment.text(bytes.toString('utf8'));
    used();
    attachment.input(bytes);
  });
  socket.on('close', () => attachment.leave());
  attachment.join({
    output(bytes) {
      socket.send(bytes, () => {
        if (socket.bufferedAmount < mostWaiting / 2) attachment.drained();
      });
      return socket.bufferedAmount < mostWaiting;
    },
    control: (frame) => socket.send(JSON.stringify(frame)),
    close: (code, reason) => socket.close(code, reason),
    cut: () => socket.terminate(),
  });
}
