// Events about selections and properties, as the X server sends them.

export const eventTypes = {
  propertyNotify: 28,
  selectionClear: 29,
  selectionRequest: 30,
  selectionNotify: 31,
} as const;

/** Without the bit that says a program has sent it. */
export function typeOf(event: Buffer): number {
  return event.readUInt8(0) & 0x7f;
}

export interface PropertyChange {
  readonly window: number;
  readonly property: number;
  readonly time: number;
  readonly deleted: boolean;
}

export function propertyChange(event: Buffer): PropertyChange {
  return {
    window: event.readUInt32LE(4),
    property: event.readUInt32LE(8),
    time: event.readUInt32LE(12),
    deleted: event.readUInt8(16) === 1,
  };
}

export interface SelectionRequest {
  readonly time: number;
  readonly owner: number;
  readonly requestor: number;
  readonly selection: number;
  readonly target: number;
  /** Old programs name none and mean the target. */
  readonly property: number;
}

export function selectionRequest(event: Buffer): SelectionRequest {
  const [time, owner, requestor, selection, target, property] = [4, 8, 12, 16, 20, 24].map((at) =>
    event.readUInt32LE(at),
  ) as [number, number, number, number, number, number];
  return { time, owner, requestor, selection, target, property: property || target };
}
