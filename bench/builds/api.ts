// Builds through the public API: how long one takes that is reused, how long a large document takes to be
// judged, and what it costs the service that ten clients follow a build.

import { readFileSync } from 'node:fs';
import { median, timed } from '../figures.ts';
import { BenchService } from '../service.ts';

const reuses = 40;
const validations = 30;
const documentBytes = 200 * 1024;
/** As many streams as an account may have; the others poll. */
const streams = 8;
const pollers = 2;
const followedSteps = 60;
const pollMs = 250;

export async function throughTheApi() {
  const service = await BenchService.start({ CUBICLE_ENGINE: 'incus', CUBICLE_POOL: '0' });
  try {
    await service.admin('plan', 'set', 'swarm', 'builds_per_day=1000');
    const { account } = (await (await service.raw('GET', '/whoami')).json()) as {
      account: { id: string };
    };
    const documents = new Documents(account.id);
    return {
      validate_200kb_ms: await validation(service, documents),
      ...(await reuse(service, documents)),
      ...(await following(service, documents)),
    };
  } finally {
    await service.end();
  }
}

class Documents {
  readonly #account: string;

  constructor(account: string) {
    this.#account = account;
  }

  of(name: string, build: readonly object[]): object {
    const family = `golden-${this.#account}-${name}`;
    return {
      apiVersion: 'cubicle/v1',
      kind: 'Template',
      metadata: { namespace: this.#account, name, version: '1.0.0' },
      spec: { os: 'linux', family, from: 'system/base', build },
    };
  }

  /** In YAML, with files that make it as long as this. */
  large(bytes: number): string {
    const head = [
      'apiVersion: cubicle/v1',
      'kind: Template',
      `metadata: {namespace: ${this.#account}, name: large, version: 1.0.0}`,
      'spec:',
      '  os: linux',
      '  from: system/base',
      '  build:',
    ].join('\n');
    let text = `${head}\n`;
    for (let n = 0; text.length < bytes; n += 1) {
      const content = `line ${n} of a file with a few words in it\n      `.repeat(40);
      text += `  - file:\n      path: /opt/large/${n}\n      content: |\n        ${content.replaceAll('\n', '\n  ')}\n`;
    }
    return text;
  }
}

async function validation(service: BenchService, documents: Documents): Promise<number> {
  const text = documents.large(documentBytes);
  const validate = async () => {
    const answer = await service.raw('POST', '/templates/validate', text);
    const { valid, problems } = (await answer.json()) as { valid: boolean; problems?: string[] };
    if (!valid) throw new Error(`not valid: ${problems?.[0]}`);
  };
  return median(await times(validations, validate));
}

async function reuse(service: BenchService, documents: Documents) {
  const document = documents.of('reused', [{ run: 'true' }]);
  await built(service, await submitted(service, document));
  const whole = await times(reuses, async () => built(service, await submitted(service, document)));
  return { reused_ms: median(whole) };
}

/** The service's resident memory while a build of many steps is followed, over that while it is not. */
async function following(service: BenchService, documents: Documents) {
  const steps = Array.from({ length: followedSteps }, (_, n) => ({ run: `sleep 0.1 # ${n}` }));
  const peak = async (follow: boolean) => {
    const id = await submitted(service, documents.of(follow ? 'followed' : 'alone', steps));
    let most = 0;
    const look = setInterval(() => (most = Math.max(most, residentMb(service.pid))), pollMs);
    const clients = follow
      ? [
          ...Array.from({ length: streams }, () => streamed(service, id)),
          ...Array.from({ length: pollers }, () => built(service, id)),
        ]
      : [];
    await Promise.all([built(service, id), ...clients]);
    clearInterval(look);
    return most;
  };
  const alone = await peak(false);
  const followed = await peak(true);
  return {
    resident_mb_alone: alone,
    resident_mb_followed: followed,
    followers_mb: followed - alone,
  };
}

async function submitted(service: BenchService, document: object): Promise<string> {
  for (;;) {
    const { status, body } = await service.send('POST', '/builds', document);
    if (status === 202) return body.id;
    if (status !== 409) throw new Error(`POST /builds: ${status} ${JSON.stringify(body)}`);
  }
}

async function built(service: BenchService, id: string): Promise<void> {
  for (;;) {
    const answer = await service.raw('GET', `/builds/${id}/progress`);
    const { done, status, error } = (await answer.json()) as Record<string, unknown>;
    if (status === 'failed') throw new Error(String(error));
    if (done === true) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function streamed(service: BenchService, id: string): Promise<void> {
  const answer = await service.raw('GET', `/builds/${id}/events`);
  if (answer.status !== 200) throw new Error(`the stream answered ${answer.status}`);
  const text = await answer.text();
  if (!text.includes('event: done')) throw new Error('the stream ended without its last event');
}

async function times(many: number, work: () => Promise<void>): Promise<number[]> {
  const all: number[] = [];
  for (let n = 0; n < many; n += 1) all.push((await timed(work))[0]);
  return all;
}

function residentMb(pid: number): number {
  const [, kib = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) / 1_024;
}
