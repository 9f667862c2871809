// What the figures are made of.

export async function timed<Result>(work: () => Promise<Result>): Promise<[number, Result]> {
  const began = performance.now();
  const result = await work();
  return [performance.now() - began, result];
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  if (low === undefined || high === undefined) throw new Error('nothing was measured');
  return (low + high) / 2;
}

/** `share` 0.99: that much of all is not above it. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = sorted[Math.min(Math.ceil(sorted.length * share), sorted.length) - 1];
  if (at === undefined) throw new Error('nothing was measured');
  return at;
}

export function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
