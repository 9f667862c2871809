// A client that writes until the service is gone, and knows afterwards what must be true.
// Its things are its own and it does one thing at a time, so at most one outcome is unknown to it.

import assert from 'node:assert/strict';
import { assertRefused } from '../support/assertions.ts';
import type { Answer, Client } from '../support/client.ts';
import type { ServiceProcess } from '../support/process.ts';

interface Key {
  readonly id: string;
  readonly workspace: string | null;
  /** Undefined when the answer that showed it was lost. */
  readonly raw: string | undefined;
}

type Deed =
  | { verb: 'create'; name: string }
  | { verb: 'rename'; id: string; name: string }
  | { verb: 'delete'; id: string }
  | { verb: 'mint'; name: string; workspace: string | null }
  | { verb: 'revoke'; key: Key };

/** What the service shows after its restart. */
export interface Shown {
  readonly workspaces: ReadonlyMap<string, string>;
  readonly keys: readonly { id: string; name: string | null; workspace_id: string | null }[];
}

export class Writer {
  readonly #name: string;
  readonly #random: () => number;
  readonly #workspaces = new Map<string, string>();
  readonly #keys = new Map<string, Key>();
  readonly #revoked: string[] = [];
  #count = 0;
  #unknown: Deed | undefined;

  constructor(name: string, random: () => number) {
    this.#name = name;
    this.#random = random;
  }

  /** Until a call gets no answer; `answered` counts those that did. */
  async write(as: Client, answered: () => void): Promise<void> {
    for (;;) {
      const deed = this.#choose();
      this.#unknown = deed;
      let answer: Answer;
      try {
        answer = await send(as, deed);
      } catch {
        return;
      }
      // Part 7: a change answered 503 may or may not have happened.
      if (answer.status === 503) return;
      assert.ok(answer.status < 300, `${deed.verb}: ${answer.status} ${answer.text}`);
      this.#unknown = undefined;
      this.#done(deed, answer.body);
      answered();
    }
  }

  #choose(): Deed {
    this.#count += 1;
    const name = `${this.#name} ${this.#count}`;
    const id = this.#pick([...this.#workspaces.keys()]);
    const key = this.#pick([...this.#keys.values()]);
    const dice = this.#random();
    if (id === undefined || dice < 0.25) return { verb: 'create', name };
    if (dice < 0.5) return { verb: 'delete', id };
    if (dice < 0.8) return { verb: 'mint', name, workspace: id };
    if (dice < 0.85) return { verb: 'mint', name, workspace: null };
    return key === undefined || dice < 0.93
      ? { verb: 'rename', id, name }
      : { verb: 'revoke', key };
  }

  #pick<Item>(items: readonly Item[]): Item | undefined {
    return items[Math.floor(this.#random() * items.length)];
  }

  #done(deed: Deed, body: { id: string; raw?: string; revoked_keys?: number }): void {
    switch (deed.verb) {
      case 'create':
        this.#workspaces.set(body.id, deed.name);
        break;
      case 'rename':
        this.#workspaces.set(deed.id, deed.name);
        break;
      case 'mint':
        this.#keys.set(body.id, { id: body.id, workspace: deed.workspace, raw: body.raw });
        break;
      case 'revoke':
        this.#revoke(deed.key);
        break;
      case 'delete': {
        const confined = this.#confined(deed.id);
        if (body.revoked_keys !== undefined) assert.equal(body.revoked_keys, confined.length);
        for (const key of confined) this.#revoke(key);
        this.#workspaces.delete(deed.id);
      }
    }
  }

  #confined(workspace: string): Key[] {
    return [...this.#keys.values()].filter((key) => key.workspace === workspace);
  }

  #revoke(key: Key): void {
    this.#keys.delete(key.id);
    if (key.raw !== undefined) this.#revoked.push(key.raw);
  }

  /** Learns from what is shown how the unanswered deed went. Half of it shows as a difference later. */
  learn(shown: Shown): string {
    const deed = this.#unknown;
    this.#unknown = undefined;
    if (deed === undefined) return 'nothing open';
    const outcome = outcomeOf(deed, shown);
    if (outcome !== undefined) this.#done(deed, outcome);
    return `${deed.verb} ${outcome === undefined ? 'absent' : 'there'}`;
  }

  /** Everything that this client should have left, by id. */
  get expected(): Shown {
    return {
      workspaces: this.#workspaces,
      keys: [...this.#keys.values()].map(({ id, workspace }) => ({
        id,
        name: null,
        workspace_id: workspace,
      })),
    };
  }

  /** Live keys act where they should; revoked ones are told so. Looks at `most` of the latter. */
  async checkKeys(service: ServiceProcess, most: number): Promise<void> {
    for (const { raw, id, workspace } of this.#keys.values()) {
      if (raw === undefined) continue;
      const { status, body } = await service.as(raw).get('/whoami');
      assert.equal(status, 200, `${id} was not revoked`);
      assert.deepEqual([body.key.id, body.workspace?.id ?? null], [id, workspace]);
    }
    for (const raw of this.#revoked.slice(-most)) {
      assertRefused(await service.as(raw).get('/whoami'), 401, 'revoked');
    }
  }
}

function send(as: Client, deed: Deed): Promise<Answer> {
  switch (deed.verb) {
    case 'create':
      return as.post('/workspaces', { name: deed.name });
    case 'rename':
      return as.patch(`/workspaces/${deed.id}`, { name: deed.name });
    case 'delete':
      return as.delete(`/workspaces/${deed.id}`);
    case 'mint':
      return as.post('/api-keys', { name: deed.name, workspace_id: deed.workspace });
    default:
      return as.delete(`/api-keys/${deed.key.id}`);
  }
}

/** What the answer would have told, when the deed happened. */
function outcomeOf(deed: Deed, { workspaces, keys }: Shown): { id: string } | undefined {
  switch (deed.verb) {
    case 'create': {
      const found = [...workspaces].find(([, name]) => name === deed.name);
      return found && { id: found[0] };
    }
    case 'rename':
      return workspaces.get(deed.id) === deed.name ? { id: deed.id } : undefined;
    case 'delete':
      return workspaces.has(deed.id) ? undefined : { id: deed.id };
    case 'mint':
      return keys.find(({ name }) => name === deed.name);
    default:
      return keys.some(({ id }) => id === deed.key.id) ? undefined : { id: deed.key.id };
  }
}
