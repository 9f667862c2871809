// Text as one word of a shell's.

export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
