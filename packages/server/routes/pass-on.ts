import type { IncomingMessage } from 'node:http';
import { Reply } from './reply.ts';

/** The host writes the answer's JSON itself; it is passed on unread. */
export function passOn(response: IncomingMessage): Reply {
  const { 'content-length': length } = response.headers;
  return new Reply({
    status: response.statusCode ?? 200,
    headers: {
      'Content-Type': 'application/json; charset=utf-8',
      ...(length !== undefined && { 'Content-Length': length }),
    },
    bytes: response,
  });
}
