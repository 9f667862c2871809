// What most tests of builds do with them.

import assert from 'node:assert/strict';
import { sql } from '../../packages/server/db/database.ts';
import type { Answer, Client } from './client.ts';
import type { TestService } from './service.ts';
import { until } from './until.ts';

// eslint-disable-next-line typescript/no-explicit-any -- tests look into answers of any shape
type Body = any;

/** A document of the account with these steps. */
export function documentOf(account: string, steps: readonly object[], spec: object = {}): Body {
  return {
    apiVersion: 'cubicle/v1',
    kind: 'Template',
    metadata: { namespace: account, name: 'own', version: '1.0.0' },
    spec: { os: 'linux', from: 'system/base', disk_gb: 10, build: steps, ...spec },
  };
}

/** Another document each time, which is not what an earlier one was. */
export function newDocument(account: string, spec: object = {}): Body {
  documents += 1;
  return documentOf(account, [{ run: `echo ${documents}` }], spec);
}
let documents = 0;

/** One that takes longer than any test; `endSlowly` ends it. */
export function slowDocument(account: string, spec: object = {}): Body {
  documents += 1;
  return documentOf(account, [{ run: `echo ${documents}\nsleep 600` }], spec);
}

export function build(as: Client, document: object | string, query = ''): Promise<Answer> {
  const raw = typeof document === 'string' ? document : JSON.stringify(document);
  return as.send('POST', `/builds${query}`, { raw });
}

export async function begun(as: Client, document: object, query = ''): Promise<Body> {
  const answer = await build(as, document, query);
  assert.equal(answer.status, 202, answer.text);
  return answer.body;
}

export async function progress(as: Client, id: string): Promise<Body> {
  const answer = await as.get(`/builds/${id}/progress`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

export function ended(as: Client, id: string): Promise<Body> {
  return until('the build comes to its end', async () => {
    const read = await progress(as, id);
    return read.done ? read : undefined;
  });
}

/** To its end, which is a success. */
export async function built(as: Client, document: object, query = ''): Promise<Body> {
  const { id } = await begun(as, document, query);
  const { status, error } = await ended(as, id);
  assert.equal(status, 'succeeded', error);
  return (await as.get(`/builds/${id}`)).body;
}

export function publish(as: Client, document: object): Promise<Answer> {
  return as.send('POST', '/templates', { raw: JSON.stringify(document) });
}

const anyRuns = sql("SELECT FROM builds WHERE status = 'running'");

/** Ends what the host still builds, and waits until that is known. */
export async function endSlowly({ host, database }: TestService): Promise<void> {
  for (const { id, state } of (await host.near.builds()).builds) {
    if (state === 'running') await host.near.removeBuild(id, 30_000);
  }
  await until('no build runs', async () => (await database.run(anyRuns, [])).length === 0);
}
