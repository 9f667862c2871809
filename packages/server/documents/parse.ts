// Reads the bytes of a document, JSON or YAML, which JSON is a part of. What comes is hostile: the library's
// own stages are driven one token at a time, so that size and depth are bounded before anything is built of
// them, and everything of YAML that a template has no use for is refused.

import { Composer, CST, isMap, isScalar, isSeq, Lexer, LineCounter, Parser } from 'yaml';
import type { Document } from 'yaml';
import { limits } from '@cubicle/contract/limits.ts';
import { Problems } from './problems.ts';

export interface Parsed {
  /** Undefined where the text could not be read at all; the problems then say why. */
  readonly value: unknown;
  readonly problems: Problems;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function parseDocument(bytes: Uint8Array): Parsed {
  const lines = new LineCounter();
  const problems = new Problems((offset) => lines.linePos(offset).line);
  const whole = (sentence: string, offset?: number) => {
    problems.add([], sentence, offset);
    return { value: undefined, problems };
  };
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return whole('is not UTF-8');
  }
  if (text.startsWith('\ufeff')) return whole('begins with a byte order mark; save it without one');
  try {
    const document = compose(text, lines);
    for (const error of document.errors) {
      whole(`cannot be read: ${plain(error.message)}`, error.pos[0]);
    }
    if (!problems.none) return { value: undefined, problems };
    return { value: new Builder(problems).value(document.contents, []), problems };
  } catch (error) {
    if (error instanceof Unacceptable) return whole(error.message, error.offset);
    // The library tells of its defects by throwing whatever comes.
    return whole('cannot be read');
  }
}

class Unacceptable extends Error {
  readonly offset: number | undefined;

  constructor(message: string, offset?: number) {
    super(message);
    this.offset = offset;
  }
}

/** What YAML has and templates have not, by the kind of its token. */
const refused: Partial<Record<CST.TokenType, string>> = {
  alias: 'uses an alias, which templates do not have; write it out',
  anchor: 'uses an anchor, which templates do not have; write it out',
  tag: 'uses a tag, which templates do not have',
  'directive-line': 'has a directive, which templates do not have',
  'explicit-key-ind': 'uses `?`, which templates do not have',
};

/** Before it the lexer says that what follows is text, whatever it looks like. */
const textMark = '\u001f';

function compose(text: string, lines: LineCounter): Document.Parsed {
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  let count = 0;
  let before = '';
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    const kind = before === textMark ? null : CST.tokenType(lexeme);
    const sentence = kind === null ? undefined : refused[kind];
    if (sentence !== undefined) throw new Unacceptable(sentence, parser.offset);
    tokens.push(...parser.next(lexeme));
    before = lexeme;
    count += 1;
    if (count > limits.templateTokens) {
      throw new Unacceptable(`has more than ${limits.templateTokens} marks, words and line ends`);
    }
    if (parser.stack.length > limits.templateDepth) {
      throw new Unacceptable('nests too deep', parser.offset);
    }
  }
  tokens.push(...parser.end());
  const [, second] = tokens.filter(({ type }) => type === 'document');
  if (second !== undefined) throw new Unacceptable('has a second document after it', second.offset);
  const composer = new Composer({
    // Looking for a key twice takes the library quadratic time; it is done below.
    uniqueKeys: false,
    prettyErrors: false,
    resolveKnownTags: false,
    merge: false,
    logLevel: 'silent',
  });
  const [document] = withoutStacks(() => [...composer.compose(tokens)]);
  if (document === undefined) throw new Unacceptable('is empty');
  return document;
}

/** The library makes an Error of every mistake; half a million of them with their stacks took 80 s. */
function withoutStacks<Result>(work: () => Result): Result {
  const usual = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return work();
  } finally {
    Error.stackTraceLimit = usual;
  }
}

type Path = readonly (string | number)[];

/** Makes plain values of nodes, and notes where each is. Depth is bounded by the parser's. */
class Builder {
  readonly #problems: Problems;

  constructor(problems: Problems) {
    this.#problems = problems;
  }

  value(node: unknown, path: Path): unknown {
    if (node === null) return null;
    if (isSeq(node)) {
      this.#problems.place(path, node.range?.[0]);
      return node.items.map((item, n) => this.value(item, [...path, n]));
    }
    if (isMap(node)) {
      this.#problems.place(path, node.range?.[0]);
      return this.#object(node.items, path);
    }
    if (!isScalar(node)) return null;
    this.#problems.place(path, node.range?.[0]);
    if (typeof node.value === 'string') this.#checkText(node.value, path);
    return node.value;
  }

  #object(pairs: readonly { key: unknown; value: unknown }[], path: Path): object {
    const made: Record<string, unknown> = {};
    for (const { key, value } of pairs) {
      const offset = isScalar(key) ? key.range?.[0] : undefined;
      const name = isScalar(key) ? key.value : undefined;
      if (typeof name !== 'string') {
        this.#problems.add(path, 'has a key that is no string; put it in quotes', offset);
        continue;
      }
      const place = [...path, name];
      if (name === '__proto__' || name === '<<') {
        this.#problems.add(place, 'is a key that templates do not have', offset);
        continue;
      }
      this.#checkText(name, path);
      if (Object.hasOwn(made, name)) {
        this.#problems.add(place, 'is there twice', offset);
        continue;
      }
      this.#problems.place(place, offset);
      made[name] = this.value(value, place);
    }
    return made;
  }

  /** Neither can be stored, nor written into a file or a variable. */
  #checkText(text: string, path: Path): void {
    if (text.includes('\0')) this.#problems.add(path, 'must have no NUL');
    if (!text.isWellFormed()) this.#problems.add(path, 'must be well-formed Unicode');
  }
}

/** The library's sentences end in nothing or in a colon with an excerpt. */
function plain(message: string): string {
  const line = message.split('\n', 1)[0] ?? '';
  return line.length > 160 ? `${line.slice(0, 160)}…` : line;
}
