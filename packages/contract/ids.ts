// The identifiers of the API: prefix and length are part of the contract (Part 2).

export const idShapes = {
  account: { prefix: 'acc-', hex: 12 },
  apiKey: { prefix: 'key-', hex: 12 },
  build: { prefix: 'bld-', hex: 12 },
  computer: { prefix: 'vm-', hex: 12 },
  execution: { prefix: 'exec_', hex: 32 },
  operation: { prefix: 'op_', hex: 24 },
  delivery: { prefix: 'whd-', hex: 16 },
  secret: { prefix: 'csec-', hex: 16 },
  secretRevision: { prefix: 'csr-', hex: 24 },
  user: { prefix: 'usr-', hex: 16 },
  webhook: { prefix: 'whk-', hex: 16 },
  workspace: { prefix: 'wsp-', hex: 12 },
} as const;

export type IdKind = keyof typeof idShapes;

const patterns = Object.fromEntries(
  Object.entries(idShapes).map(([kind, { prefix, hex }]) => [
    kind,
    new RegExp(`^${prefix}[0-9a-f]{${hex}}$`),
  ]),
) as Record<IdKind, RegExp>;

export function idPattern(kind: IdKind): RegExp {
  return patterns[kind];
}

/** False for anything that no id of this kind could be; such an id is never looked up. */
export function isId(kind: IdKind, value: string): boolean {
  return patterns[kind].test(value);
}

/** A raw API key. Shown once, stored as a hash. */
export const rawKeyPattern = /^com_[0-9a-f]{48}$/;
