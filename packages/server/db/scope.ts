// The bound of every read and write on behalf of a caller: one account, and within it perhaps one workspace.

export interface Scope {
  readonly accountId: string;
  /** The workspace the key is confined to; null for an account-wide key. */
  readonly workspaceId: string | null;
}
