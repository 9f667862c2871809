// The paths of builds in the host's private API.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { hostBuildOrder } from '@cubicle/contract/host/builds.ts';
import { readText, sendJson } from '../api.ts';
import type { Context } from '../engine/engine.ts';
import type { Builds } from './builds.ts';

export interface BuildsRequest {
  readonly context: Context;
  /** Empty for all of them. */
  readonly id: string;
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Judging an order or ending a build goes on when its caller goes away. */
const wholeMs = 600_000;
/** It becomes a label of the engine's. */
const idPattern = /^[A-Za-z0-9_-]{1,64}$/;

export async function answerBuilds(builds: Builds, call: BuildsRequest): Promise<void> {
  const { context, id, query, request, response } = call;
  const { method } = request;
  if (id === '') return sendJson(response, 200, builds.list());
  if (!idPattern.test(id)) return sendJson(response, 400, { error: 'not an id' });
  const whole = { signal: AbortSignal.timeout(wholeMs) };
  if (method === 'PUT') {
    // What is wrong with an order is not told: it may be a secret.
    const order = hostBuildOrder.safeParse(parsed(await readText(request)));
    if (!order.success) return sendJson(response, 400, { error: 'not an order' });
    return sendJson(response, 200, await builds.order(whole, id, order.data));
  }
  if (method === 'DELETE') {
    await builds.remove(whole, id);
    return sendJson(response, 200, {});
  }
  const after = query.has('after') ? Number(query.get('after')) : undefined;
  const told = await builds.tell(context, id, after, Number(query.get('wait_ms')));
  return sendJson(response, told === undefined ? 404 : 200, told ?? { error: 'absent' });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
