// Positions in a computer's history as clients hold them: `epoch:count`, of which they know nothing. The
// count is how many entries stand before the position.

/** Longer numbers are no counts of ours. */
const written = /^([0-9a-f]{16}):(0|[1-9]\d{0,14})$/;

export function cursorAt(epoch: string, count: number): string {
  return `${epoch}:${count}`;
}

/** Nothing for a cursor of another computer, of an earlier life of the daemon, or of nobody's. */
export function countOf(epoch: string, cursor: string): number | undefined {
  const [, of, count] = written.exec(cursor) ?? [];
  return of === epoch ? Number(count) : undefined;
}
