// Checks of JSON that crossed the link. By hand and not by zod: the agent carries them into every guest,
// where zod alone was measured at 10 MB of memory.

export type Shape<T> = (value: unknown) => value is T;
export type Shaped<S> = S extends Shape<infer T> ? T : never;

/** At most so many UTF-16 units. */
export function text(most: number): Shape<string> {
  return (value): value is string => typeof value === 'string' && value.length <= most;
}

/** As `text`, without halves of characters: what people and strict decoders read. */
export function words(most: number): Shape<string> {
  return (value): value is string =>
    typeof value === 'string' && value.length <= most && value.isWellFormed();
}

export function matching(pattern: RegExp): Shape<string> {
  return (value): value is string => typeof value === 'string' && pattern.test(value);
}

export function whole(least: number, most: number): Shape<number> {
  return (value): value is number =>
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
}

export function number(least: number, most: number): Shape<number> {
  return (value): value is number => typeof value === 'number' && value >= least && value <= most;
}

export const flag: Shape<boolean> = (value): value is boolean => typeof value === 'boolean';

export function oneOf<const T extends string | boolean | null>(...values: readonly T[]): Shape<T> {
  return (value): value is T => values.includes(value as T);
}

export function either<A, B>(a: Shape<A>, b: Shape<B>): Shape<A | B> {
  return (value): value is A | B => a(value) || b(value);
}

export function listOf<T>(item: Shape<T>, most: number): Shape<T[]> {
  return (value): value is T[] => Array.isArray(value) && value.length <= most && value.every(item);
}

export function mapOf<T>(item: Shape<T>, most: number): Shape<Record<string, T>> {
  return (value): value is Record<string, T> =>
    isObject(value) && Object.keys(value).length <= most && Object.values(value).every(item);
}

/** Exactly these fields. */
export function fields<T extends Record<string, Shape<unknown>>>(
  shapes: T,
): Shape<{ readonly [K in keyof T]: Shaped<T[K]> }> {
  const names = Object.keys(shapes);
  return (value): value is { readonly [K in keyof T]: Shaped<T[K]> } =>
    isObject(value) &&
    Object.keys(value).length === names.length &&
    names.every((name) => Object.hasOwn(value, name) && shapes[name]?.(value[name]) === true);
}

/** Objects told apart by one field. */
export function taggedBy<T extends Record<string, Shape<unknown>>>(
  tag: string,
  shapes: T,
): Shape<Shaped<T[keyof T]>> {
  return (value): value is Shaped<T[keyof T]> => {
    if (!isObject(value)) return false;
    const name = value[tag];
    return (
      typeof name === 'string' && Object.hasOwn(shapes, name) && shapes[name]?.(value) === true
    );
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
