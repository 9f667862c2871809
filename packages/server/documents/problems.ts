// What is wrong with a document: each problem a string that begins with the path of what it is about, with
// its line where the text has one.

import type { z } from 'zod';
import { limits } from '@cubicle/contract/limits.ts';

type Path = readonly PropertyKey[];

export class Problems {
  readonly #lineAt: (offset: number) => number;
  readonly #offsets = new Map<string, number>();
  readonly #sentences = new Set<string>();
  #more = 0;

  constructor(lineAt: (offset: number) => number) {
    this.#lineAt = lineAt;
  }

  /** Where in the text a path is; the first word counts, which is that of the key. */
  place(path: Path, offset: number | undefined): void {
    const key = shownPath(path);
    if (offset !== undefined && !this.#offsets.has(key)) this.#offsets.set(key, offset);
  }

  add(path: Path, sentence: string, offset?: number): void {
    const shown = shownPath(path);
    const at = offset ?? (path.length === 0 ? undefined : this.#offsets.get(shown));
    const line = at === undefined ? '' : ` (line ${this.#lineAt(at)})`;
    if (this.#sentences.size < limits.templateProblems) {
      this.#sentences.add(`${shown}${line} ${sentence}`);
    } else this.#more += 1;
  }

  addIssues({ issues }: z.ZodError): void {
    for (const issue of issues) {
      if (issue.code === 'unrecognized_keys') {
        for (const key of issue.keys) {
          this.add([...issue.path, key], 'is not a field that templates have here');
        }
      } else if (!isOfExactness(issue)) this.add(issue.path, sentenceOf(issue));
    }
  }

  get none(): boolean {
    return this.#sentences.size === 0;
  }

  list(): string[] {
    const more = this.#more === 0 ? [] : [`document has ${this.#more} more problems`];
    return [...this.#sentences, ...more];
  }
}

/** Past what a number can hold exactly it is past its own bound as well, which is told. */
function isOfExactness(issue: z.core.$ZodIssue): boolean {
  return (
    (issue.code === 'too_big' && issue.maximum === Number.MAX_SAFE_INTEGER) ||
    (issue.code === 'too_small' && issue.minimum === Number.MIN_SAFE_INTEGER)
  );
}

function sentenceOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return wrongType(issue.expected, issue.input);
    case 'invalid_value': {
      if (issue.input === undefined) return 'is required';
      const values = issue.values.map((value) => `\`${String(value)}\``);
      return values.length === 1 ? `must be ${values[0]}` : `must be one of ${values.join(', ')}`;
    }
    case 'too_small':
      return `must ${counted(issue.origin, 'at least', issue.minimum)}`;
    case 'too_big':
      return `must ${counted(issue.origin, 'at most', issue.maximum)}`;
    case 'invalid_key':
      return `is no name for it: it ${issue.issues[0]?.message ?? 'cannot be read'}`;
    default:
      return issue.message;
  }
}

const nouns: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  array: 'a list',
  object: 'a map',
  record: 'a map',
};

function wrongType(expected: string, input: unknown): string {
  if (input === undefined) return 'is required';
  if (expected === 'number' && typeof input === 'number') return 'must be a finite number';
  const scalar = typeof input === 'number' || typeof input === 'boolean';
  const hint = expected === 'string' && scalar ? '; put it in quotes' : '';
  return `must be ${nouns[expected] ?? expected}${hint}`;
}

function counted(origin: string, bound: string, count: number | bigint): string {
  if (origin === 'string') return `have ${bound} ${count} characters`;
  if (origin === 'array') return `have ${bound} ${count} entries`;
  return `be ${bound} ${count}`;
}

/** `spec.build.0.run`; a key that would not read as one is quoted, and none goes on for long. */
function shownPath(path: Path): string {
  if (path.length === 0) return 'document';
  return path
    .map((part) => {
      const text = String(part);
      if (/^[\w-]{1,64}$/.test(text)) return text;
      return JSON.stringify(text.length <= 64 ? text : `${text.slice(0, 64)}…`);
    })
    .join('.');
}
