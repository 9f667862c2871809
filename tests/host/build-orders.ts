// Builds as a control plane orders them from a host, without one: over the host's own socket.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import {
  type HostCommand,
  type HostOutcome,
  hostOutcome,
  hostPaths,
  type HostReport,
  hostReport,
} from '../../packages/contract/host/api.ts';
import {
  type HostBuildAnswer,
  hostBuildAnswer,
  type HostBuildOrder,
  hostBuildPaths,
  type HostBuildProgress,
  hostBuildProgress,
  type HostBuilds,
  hostBuilds,
  hostBuildStep,
  type HostBuildStep,
} from '../../packages/contract/host/builds.ts';

const shape = { cpu: 1, ram_mb: 1_024, disk_gb: 10 };

/** A step without its label, which is its kind. */
type Wish = { readonly kind: HostBuildStep['kind'] };

export const apt = (...packages: string[]) => ({ kind: 'apt', packages }) as const;
export const run = (script: string) => ({ kind: 'run', script }) as const;
export const mkdir = (path: string, mode = '0755', owner = 'root') =>
  ({ kind: 'mkdir', path, mode, owner }) as const;
export const env = (variables: Record<string, string>) => ({ kind: 'env', variables }) as const;
export const file = (path: string, text: string, mode = '0644', owner = 'root') => {
  const content_b64 = Buffer.from(text).toString('base64');
  return { kind: 'file', path, mode, owner, content_b64 } as const;
};
export const finish = (variables: Record<string, string> = {}) =>
  ({ kind: 'finish', env: variables }) as const;

export class BuildOrders {
  readonly #folder: string;

  constructor(dataDir: string) {
    this.#folder = join(dataDir, 'host');
  }

  /** From the base image, unless the order says otherwise. */
  async order(
    id: string,
    steps: readonly Wish[],
    wish: Partial<HostBuildOrder> = {},
  ): Promise<HostBuildAnswer> {
    const { images } = (await this.report()).host;
    const whole: HostBuildOrder = {
      parent: { template: 'base', digest: images['base'] ?? '' },
      shape,
      steps: steps.map((step) => hostBuildStep.parse({ label: step.kind, ...step })),
      secrets: {},
      ...wish,
    };
    const { status, body } = await this.send('PUT', hostBuildPaths.build(id), whole);
    assert.equal(status, 200);
    return hostBuildAnswer.parse(body);
  }

  /** Undefined when the host knows no such build. */
  async tell(id: string, query = ''): Promise<HostBuildProgress | undefined> {
    const { status, body } = await this.send('GET', hostBuildPaths.build(id) + query);
    if (status === 404) return undefined;
    assert.equal(status, 200);
    return hostBuildProgress.parse(body);
  }

  /** Every move of it that a listener hears, to its end. */
  async follow(id: string): Promise<HostBuildProgress[]> {
    const heard: HostBuildProgress[] = [];
    for (;;) {
      const told = await this.tell(id, `?after=${heard.at(-1)?.moves ?? -1}&wait_ms=10000`);
      assert.ok(told, `${id} is gone`);
      if (told.moves !== heard.at(-1)?.moves) heard.push(told);
      if (told.status !== 'running') return heard;
    }
  }

  /** Ordered, and followed to its end. */
  async finished(
    id: string,
    steps: readonly Wish[],
    wish?: Partial<HostBuildOrder>,
  ): Promise<HostBuildProgress> {
    assert.deepEqual(await this.order(id, steps, wish), { outcome: 'accepted' });
    const last = (await this.follow(id)).at(-1);
    assert.ok(last);
    return last;
  }

  async list(): Promise<HostBuilds['builds']> {
    return hostBuilds.parse((await this.send('GET', hostBuildPaths.builds)).body).builds;
  }

  async remove(id: string): Promise<void> {
    assert.equal((await this.send('DELETE', hostBuildPaths.build(id))).status, 200);
  }

  async report(): Promise<HostReport> {
    return hostReport.parse((await this.send('GET', hostPaths.report)).body);
  }

  async command(computer: string, command: HostCommand): Promise<HostOutcome> {
    const path = hostPaths.commands(computer);
    return hostOutcome.parse((await this.send('POST', path, command)).body);
  }

  /** A computer of a build's. */
  create(computer: string, build: string, start = false): Promise<HostOutcome> {
    return this.command(computer, {
      kind: 'create',
      operation: `op-${computer}`,
      template: 'base',
      build,
      shape,
      resolution: '1280x800x24',
      name: computer,
      start,
    });
  }

  async send(
    method: string,
    path: string,
    json?: unknown,
  ): Promise<{ status: number; body: unknown }> {
    const token = readFileSync(join(this.#folder, 'token'), 'utf8').trim();
    const headers = { authorization: `Bearer ${token}` };
    const socketPath = join(this.#folder, 'host.sock');
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: unknown }>();
    const request = httpRequest({ socketPath, method, path, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response
        .on('error', reject)
        .on('end', () => resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) }));
    });
    request.on('error', reject).end(json === undefined ? undefined : JSON.stringify(json));
    return promise;
  }
}
