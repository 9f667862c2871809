// An answer that says more than a value: another status, further headers, or bytes instead of JSON.

export interface ReplyParts {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly value?: unknown;
  /** Sent as they come; `headers` then carries their type, and their length where it is known. */
  readonly bytes?: AsyncIterable<Uint8Array>;
  /** Cuts the answer off when it aborts: for bytes that end on their own account, and a reader that does not read. */
  readonly cut?: AbortSignal;
}

export class Reply {
  readonly parts: ReplyParts;

  constructor(parts: ReplyParts) {
    this.parts = parts;
  }
}
