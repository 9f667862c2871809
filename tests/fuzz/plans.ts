// What a request asks for before it is made odd: a method, a path, a body, and what obeying it would do.

import { basePath } from '../../packages/contract/routes.ts';
import type { Aim, Model } from './model.ts';
import { elsewhereTarget, type Junk, oddBody, type OddBody } from './odd-parts.ts';
import type { Random } from './random.ts';

export interface Plan {
  readonly method: string;
  readonly path: string;
  readonly aim: Aim;
  readonly body?: Buffer;
}

const kinds = [
  [8, 'whoami'],
  [6, 'account'],
  [8, 'workspaces'],
  [14, 'workspace'],
  [5, 'members'],
  [3, 'keys'],
  [10, 'elsewhere'],
  [5, 'method'],
  [16, 'create'],
  [10, 'rename'],
  [5, 'delete'],
  [4, 'mint'],
  [3, 'revoke'],
] as const;
const readMethods = [
  [8, 'GET'],
  [2, 'HEAD'],
  [1, 'OPTIONS'],
] as const;
const unknownMethods = [
  'TRACE',
  'PROPFIND',
  'LOCK',
  'PURGE',
  'M-SEARCH',
  'REPORT',
  'QUERY',
  'LINK',
];

/** What stands at most in a lane's account, so that it neither grows full nor empty. */
const mostWorkspaces = 25;
const mostKeys = 40;

const nothing: Aim = { kind: 'nothing' };

export class Planner {
  readonly #random: Random;
  readonly #junk: Junk;
  readonly #model: Model;
  readonly #foreignWorkspace: string;
  readonly #newName: () => string;
  /** Ids that a request of this batch may change: one at a time, or the answers would not tell the order. */
  #touched = new Set<string>();

  /** `foreignWorkspace` belongs to somebody else. */
  constructor(
    random: Random,
    junk: Junk,
    model: Model,
    foreignWorkspace: string,
    newName: () => string,
  ) {
    this.#random = random;
    this.#junk = junk;
    this.#model = model;
    this.#foreignWorkspace = foreignWorkspace;
    this.#newName = newName;
  }

  beginBatch(): void {
    this.#touched = new Set();
  }

  plan(): Plan {
    const id = this.#someWorkspace();
    const one = `${basePath}/workspaces/${id}`;
    switch (this.#kind()) {
      case 'whoami':
        return this.#reading('/whoami');
      case 'account':
        return this.#reading('/account');
      case 'workspaces':
        return this.#reading('/workspaces', { kind: 'list workspaces' });
      case 'workspace':
        return this.#reading(`/workspaces/${id}`);
      case 'members':
        return this.#reading(`/workspaces/${id}/members`);
      case 'keys':
        return this.#reading('/api-keys');
      case 'elsewhere':
        return { ...this.#reading(''), path: elsewhereTarget(this.#random) };
      case 'create': {
        const { name, bytes } = this.#body();
        const aim: Aim = { kind: 'create', name };
        return { method: 'POST', path: `${basePath}/workspaces`, aim, body: bytes };
      }
      case 'rename': {
        this.#touch(id);
        const { name, bytes } = this.#body();
        return { method: 'PATCH', path: one, aim: { kind: 'rename', id, name }, body: bytes };
      }
      case 'delete':
        this.#touch(id);
        return { method: 'DELETE', path: one, aim: { kind: 'delete', id } };
      case 'mint':
        return this.#minting(id);
      case 'revoke':
        return this.#revoking();
      default:
        return { method: this.#random.pick(unknownMethods), path: one, aim: nothing };
    }
  }

  #kind(): (typeof kinds)[number][1] {
    const kind = this.#random.weighted(kinds);
    if (kind === 'create' && this.#model.madeWorkspaces.size >= mostWorkspaces) return 'delete';
    if (kind === 'mint' && this.#model.madeKeys.size >= mostKeys) return 'revoke';
    return kind;
  }

  /** Now and then with a body that nobody wants. */
  #reading(path: string, aim: Aim = nothing): Plan {
    const method = this.#random.weighted(readMethods);
    const stray = this.#random.chance(0.08) && { body: this.#body().bytes };
    return { method, path: basePath + path, aim, ...stray };
  }

  #minting(workspaceId: string): Plan {
    const confined = this.#random.chance(0.3);
    if (confined) this.#touch(workspaceId);
    const body = confined
      ? Buffer.from(JSON.stringify({ workspace_id: workspaceId }))
      : this.#body().bytes;
    return { method: 'POST', path: `${basePath}/api-keys`, aim: { kind: 'mint' }, body };
  }

  #revoking(): Plan {
    const keys = [...this.#model.madeKeys].filter((key) => this.#isUntouched(key));
    const id = keys.length > 0 ? this.#random.pick(keys) : `key-${this.#random.hex(12)}`;
    this.#touch(id);
    return { method: 'DELETE', path: `${basePath}/api-keys/${id}`, aim: { kind: 'revoke', id } };
  }

  #body(): OddBody {
    return oddBody(this.#random, this.#junk, this.#newName);
  }

  /** A key goes with its workspace, so both must rest. */
  #isUntouched(key: string): boolean {
    const workspace = this.#model.keys.get(key);
    return !this.#touched.has(key) && !(workspace && this.#touched.has(workspace));
  }

  #touch(id: string): void {
    this.#touched.add(id);
    const workspace = this.#model.keys.get(id);
    if (workspace) this.#touched.add(workspace);
  }

  /** Mostly one that a request of this lane has made and no other of this batch is about to change. */
  #someWorkspace(): string {
    const random = this.#random;
    const made = [...this.#model.madeWorkspaces].filter((id) => !this.#touched.has(id));
    if (made.length > 0 && random.chance(0.8)) return random.pick(made);
    return random.pick([
      `wsp-${random.hex(12)}`,
      this.#foreignWorkspace,
      'wsp-',
      'WSP-000000000000',
      'null',
      `wsp-${'0'.repeat(13)}`,
      `key-${random.hex(12)}`,
      '%f0%9f%a7%8a',
      "1'%20OR%20'1'='1",
    ]);
  }
}
