// A plain HTTP client for tests. Every answer is held against the contract: a success against the shape of
// the route's answer, a refusal against the errors the route may raise.

import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { type ErrorEntry, type ErrorName, errors } from '../../packages/contract/errors.ts';
import { errorsOf, errorsOutsideRoutes } from '../../packages/contract/route-errors.ts';
import type { Route } from '../../packages/contract/route.ts';
import { routes } from '../../packages/contract/routes.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
  readonly bytes: Buffer;
  /** The parsed body; fails the test when it is not JSON. */
  // eslint-disable-next-line typescript/no-explicit-any -- tests look into answers of any shape
  readonly body: any;
}

export interface Sending {
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent as it is. */
  readonly raw?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

const shapes = Object.values<Route>(routes).map((route) => ({
  route,
  path: new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, '[^/?]+')}(\\?.*)?$`),
}));

export class Client {
  readonly #baseUrl: string;
  readonly #key: string | undefined;

  constructor(baseUrl: string, key?: string) {
    this.#baseUrl = baseUrl;
    this.#key = key;
  }

  get = (path: string, sending?: Sending) => this.send('GET', path, sending);
  head = (path: string, sending?: Sending) => this.send('HEAD', path, sending);
  options = (path: string, sending?: Sending) => this.send('OPTIONS', path, sending);
  post = (path: string, json?: unknown) => this.send('POST', path, { json });
  put = (path: string, json?: unknown) => this.send('PUT', path, { json });
  patch = (path: string, json?: unknown) => this.send('PATCH', path, { json });
  delete = (path: string) => this.send('DELETE', path);

  /** `path` below the base URL; one that begins with `http` is taken whole. */
  async send(method: string, path: string, sending: Sending = {}): Promise<Answer> {
    const body =
      sending.raw ?? (sending.json === undefined ? undefined : JSON.stringify(sending.json));
    const answer = await exchange(
      path.startsWith('http') ? path : this.#baseUrl + path,
      method,
      body,
      {
        ...(this.#key === undefined ? {} : { authorization: `Bearer ${this.#key}` }),
        ...(sending.json === undefined ? {} : { 'content-type': 'application/json' }),
        ...sending.headers,
      },
    );
    if (method !== 'HEAD') holdAgainstContract(method, path, answer);
    return answer;
  }
}

function exchange(
  url: string,
  method: string,
  body: string | Buffer | undefined,
  headers: Record<string, string>,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    // The path goes out as it is written: URL would tidy up just what these tests are about.
    const { origin, hostname, port } = new URL(url);
    const path = url.slice(origin.length) || '/';
    const where = { hostname, port, path, method, headers, agent: false };
    const request = httpRequest(where, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const bytes = Buffer.concat(chunks);
        const text = bytes.toString('utf8');
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers as Record<string, string | undefined>,
          text,
          bytes,
          get body() {
            return JSON.parse(text);
          },
        });
      });
    });
    request.on('error', reject);
    request.end(body);
  });
}

function holdAgainstContract(method: string, path: string, answer: Answer): void {
  const route = shapes.find(
    (shape) => shape.route.method === method && shape.path.test(path),
  )?.route;
  if (route === undefined || answer.status === 308) return;
  if (answer.status >= 400) {
    const raised = [...errorsOf(route), ...errorsOutsideRoutes].some((name) =>
      speaks(name, answer),
    );
    assert.ok(raised, `${method} ${path} may not raise: ${answer.status} ${answer.text}`);
    return;
  }
  const { status, also, mediaType } = route.answer;
  assert.ok(answer.status === status || answer.status === also, `${answer.status} ${answer.text}`);
  if (mediaType !== undefined) return;
  const checked = route.answer.schema.safeParse(answer.body);
  assert.ok(checked.success, `${method} ${path}: ${checked.error?.message}\n${answer.text}`);
}

/** Whether an answer is this error: its status, its reason, its sentence with anything filled in. */
function speaks(name: ErrorName, { status, body }: Answer): boolean {
  const entry: ErrorEntry = errors[name];
  const sentence = entry.sentence
    .split(/\{\w+\}/)
    .map((part) => RegExp.escape(part))
    .join('.+');
  return (
    entry.status === status &&
    entry.reason === body.reason &&
    new RegExp(`^${sentence}$`, 's').test(body.error)
  );
}
