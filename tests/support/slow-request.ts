// A request under way: admitted by the service, half of its body sent, the rest when the test says so.

import { once } from 'node:events';
import { type Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Answer } from './client.ts';

export interface SlowRequest {
  /** Sends the rest and reads the answer. */
  finish(): Promise<Answer>;
}

/**
 * The service says `100 Continue` when it has admitted the call and wants its body, so what the test does
 * after this returns certainly happens in flight.
 */
export async function beginSlowly(
  url: string,
  key: string,
  { method, json, agent }: { method: 'POST' | 'PATCH'; json: unknown; agent?: Agent },
): Promise<SlowRequest> {
  const body = Buffer.from(JSON.stringify(json));
  const request = httpRequest(url, {
    method,
    agent: agent ?? false,
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'content-length': body.length,
      expect: '100-continue',
    },
  });
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  answered.catch(() => {});
  request.flushHeaders();
  await Promise.race([
    once(request, 'continue'),
    answered.then(([response]) => {
      throw new Error(`answered ${response.statusCode} before the body was sent`);
    }),
  ]);
  const half = Math.floor(body.length / 2);
  request.write(body.subarray(0, half));
  return {
    async finish() {
      request.end(body.subarray(half));
      const [response] = await answered;
      const chunks = await response.toArray();
      const bytes = Buffer.concat(chunks as Buffer[]);
      const text = bytes.toString('utf8');
      return {
        status: response.statusCode ?? 0,
        headers: response.headers as Answer['headers'],
        text,
        bytes,
        get body() {
          return JSON.parse(text);
        },
      };
    },
  };
}
