// What this process remembers of authorities, trusted only while the news of changes is fresh.

import type { AuthorityMemory, Remembered } from './authority.ts';

/** Bounds the memory to some tens of megabytes; the least recently stored goes first. */
const mostRemembered = 50_000;

export class RecentAuthorities implements AuthorityMemory {
  readonly #entries = new Map<string, Remembered>();
  /** Hashes by what a change names, so that forgetting does not search. */
  readonly #named = new Map<string, Set<string>>();
  readonly #most: number;
  #trusted: () => boolean = () => false;
  #changes = 0;

  constructor(most = mostRemembered) {
    this.#most = most;
  }

  trustWhile(trusted: () => boolean): void {
    this.#trusted = trusted;
  }

  get(hash: string): Remembered | undefined {
    return this.#trusted() ? this.#entries.get(hash) : undefined;
  }

  mark(): number {
    return this.#changes;
  }

  put(hash: string, entry: Remembered, mark: number): void {
    // Something changed while this was being read: it may be older than the change.
    if (mark !== this.#changes) return;
    this.#drop(hash);
    this.#entries.set(hash, entry);
    for (const name of names(entry)) {
      const hashes = this.#named.get(name);
      if (hashes === undefined) this.#named.set(name, new Set([hash]));
      else hashes.add(hash);
    }
    if (this.#entries.size > this.#most) this.#drop(this.#entries.keys().next().value as string);
  }

  forget(kind: 'account' | 'user' | 'key', id: string): void {
    this.#changes += 1;
    for (const hash of this.#named.get(`${kind}:${id}`) ?? []) this.#drop(hash);
  }

  forgetAll(): void {
    this.#changes += 1;
    this.#entries.clear();
    this.#named.clear();
  }

  get size(): number {
    return this.#entries.size;
  }

  #drop(hash: string): void {
    const entry = this.#entries.get(hash);
    if (entry === undefined) return;
    this.#entries.delete(hash);
    for (const name of names(entry)) {
      const hashes = this.#named.get(name);
      hashes?.delete(hash);
      if (hashes?.size === 0) this.#named.delete(name);
    }
  }
}

function names(entry: Remembered): string[] {
  return [`account:${entry.accountId}`, `user:${entry.userId}`, `key:${entry.keyId}`];
}
