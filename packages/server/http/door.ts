// The door: every request to the API passes these steps in this order (Parts 1, 5, 7 and 8).

import type { IncomingMessage } from 'node:http';
import { Refusal } from '@cubicle/contract/errors.ts';
import { costs } from '@cubicle/contract/limits.ts';
import { atLeast, type Route } from '@cubicle/contract/route.ts';
import type { Authority, Gatekeeper } from '../app/authority.ts';
import type { Budget } from '../app/budget.ts';
import { checkKey, isKnownKey, type Keyed, replayOf, requestDigest } from '../app/idempotency.ts';
import type { KeyUses } from '../app/key-uses.ts';
import type { Database } from '../db/database.ts';
import { type BodyTimes, readBytes, readJsonBody, readUpload } from './body.ts';
import { readQuery } from './query.ts';
import type { Entry } from '../routes/handler.ts';
import { type Exchange, send, sendAnswer, sendJson } from './reply.ts';
import { requestIdHeader } from './request-id.ts';
import { type Match, Router } from './router.ts';

export interface DoorParts {
  readonly entries: readonly Entry[];
  readonly database: Database;
  readonly gatekeeper: Gatekeeper;
  readonly budget: Budget;
  readonly uses: KeyUses;
  readonly bodyTimes: BodyTimes;
}

export class Door {
  readonly #parts: DoorParts;
  readonly #router: Router<Entry>;

  constructor(parts: DoorParts) {
    this.#parts = parts;
    this.#router = new Router(parts.entries);
  }

  /** `segments` are those below the base path, undefined for a path that nothing can match. */
  find(segments: readonly string[] | undefined): Match<Entry> | undefined {
    return segments === undefined ? undefined : this.#router.match(segments);
  }

  /** Answers, or throws what refuse() answers. Returns the name of the route, for the metrics. */
  async pass(
    exchange: Exchange,
    match: Match<Entry> | undefined,
    proceed: () => void,
  ): Promise<string> {
    const { request } = exchange;
    const method = request.method ?? '';
    if (method === 'OPTIONS') return answerOptions(exchange, match);

    const { database, gatekeeper, budget, uses, bodyTimes } = this.#parts;
    // The credential, and whether its holder still stands (401 and 403, both free).
    const authority = await gatekeeper.admit(request.headers.authorization);
    uses.note(authority.keyId);

    const verdict = judge(match, method, authority);
    const refused = verdict instanceof Refusal;
    const key = refused ? undefined : idempotencyKey(request, verdict.entry);
    // An answer that is stored already, or still being made, is as cheap as a refusal.
    const known = key !== undefined && (await isKnownKey(database, authority, key));
    const cost = refused || known ? costs.refusedAtTheDoor : verdict.entry.route.cost;
    exchange.meter = await budget.charge(authority, cost);
    if (!exchange.meter.admitted) {
      const { bucket, retryAfterS } = exchange.meter;
      throw new Refusal('rate_limited', { bucket, seconds: retryAfterS });
    }
    if (refused) throw verdict;

    const { name, route, handle } = verdict.entry;
    requireStanding(authority, route);
    const query = route.query && readQuery(exchange.query, route.query);
    const body = route.body && (await readJsonBody(request, route.body, bodyTimes, proceed));
    const document =
      route.document && (await readBytes(request, route.document.cap, bodyTimes, proceed));
    const upload = route.upload && readUpload(request, route.upload.cap, bodyTimes, proceed);
    const keyed = key === undefined ? undefined : keyedCall(key, [method, request.url, body]);
    const replay = keyed && (await replayOf(database, authority, keyed));
    if (replay !== undefined) {
      sendJson(exchange, replay.status, replay.body, { 'Idempotent-Replayed': 'true' });
      return name;
    }
    const { range } = request.headers;
    const answer = await handle({
      authority,
      parameters: verdict.parameters,
      query,
      body,
      document,
      keyed,
      range: method === 'HEAD' ? undefined : range,
      upload,
      requestId: exchange.requestId,
      signal: goneSignal(exchange),
      onLastWord: (heard) => onLastWord(exchange, heard),
    });
    await sendAnswer(exchange, route.answer.status, answer);
    return name;
  }
}

function idempotencyKey(request: IncomingMessage, { route }: Entry): string | undefined {
  const key = route.idempotent && request.headers['idempotency-key'];
  return typeof key === 'string' ? key : undefined;
}

function keyedCall(key: string, request: readonly unknown[]): Keyed {
  checkKey(key);
  return { key, digest: requestDigest(request) };
}

/** Aborted when the caller hangs up before the answer is out. */
function goneSignal({ response }: Exchange): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  return gone.signal;
}

function onLastWord({ request, response }: Exchange, heard: () => void): void {
  const { socket } = request;
  if (socket.readableEnded) heard();
  socket.once('end', heard);
  response.once('close', () => socket.off('end', heard));
}

/** Part 1 rule 4: public, unmetered, no credential read. */
function answerOptions(exchange: Exchange, match: Match<Entry> | undefined): string {
  if (match === undefined) throw new Refusal('endpoint_unknown');
  send(exchange, 204, undefined, {
    Allow: match.place.allow,
    [requestIdHeader]: exchange.requestId,
  });
  return 'options';
}

interface Admission {
  readonly entry: Entry;
  readonly parameters: Readonly<Record<string, string>>;
}

/** The route that is asked for, or the refusal at the door, which costs one unit whatever it is. */
function judge(
  match: Match<Entry> | undefined,
  method: string,
  authority: Authority,
): Admission | Refusal {
  if (match === undefined) return new Refusal('endpoint_unknown');
  const { place, parameters } = match;
  const entry = place.entries.get(method === 'HEAD' ? 'GET' : method);
  if (entry === undefined) return new Refusal('method_unsupported', { allow: place.allow });
  const { role, reach } = entry.route;
  if (!atLeast(authority.role, role)) {
    return new Refusal('role_too_low', { needed: role, role: authority.role });
  }
  if (reach === 'account' && authority.workspaceId !== null) {
    return new Refusal('account_wide_only');
  }
  return { entry, parameters };
}

/** Refusals after the full cost was taken, before a byte of the body is read. */
function requireStanding(authority: Authority, route: Route): void {
  if (authority.accountSuspended && route.whileSuspended !== true) {
    throw new Refusal('account_suspended');
  }
  if (route.verifiedFor !== undefined && !authority.verified) {
    throw new Refusal('email_unverified', { doing: route.verifiedFor });
  }
}
