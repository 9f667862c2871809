// Text into HTML: what is filled into a template is escaped unless it is HTML already.

export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escape(value: string | number | Html): string {
  if (value instanceof Html) return value.toString();
  return String(value).replace(/[&<>"']/g, (character) => entities[character] as string);
}

export function html(parts: TemplateStringsArray, ...values: (string | number | Html)[]): Html {
  return new Html(
    parts.reduce((text, part, i) => text + escape(values[i - 1] as string | number | Html) + part),
  );
}

/** Text of our own that is HTML or CSS as it stands. */
html.raw = (text: string): Html => new Html(text);

export function join(parts: readonly Html[], between = '\n'): Html {
  return new Html(parts.join(between));
}
