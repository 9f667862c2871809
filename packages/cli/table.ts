// An answer of the operator's command for a person: lists as tables, single things as lines.

type Row = Record<string, unknown>;

export function printAnswer(answer: object): void {
  for (const [name, value] of Object.entries(answer)) {
    if (Array.isArray(value)) printTable(value as Row[]);
    else for (const line of lines(name, value)) console.log(line);
  }
}

function printTable(rows: readonly Row[]): void {
  const columns = Object.keys(rows[0] ?? {});
  const cells = rows.map((row) => columns.map((column) => text(row[column])));
  const widths = columns.map((column, i) =>
    Math.max(column.length, ...cells.map((row) => row[i]?.length ?? 0)),
  );
  for (const row of [columns, ...cells]) {
    console.log(
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    );
  }
}

function lines(name: string, value: unknown): string[] {
  if (typeof value !== 'object' || value === null || value instanceof Date) {
    return [`${name}: ${text(value)}`];
  }
  return Object.entries(value).flatMap(([key, inner]) => lines(`${name}.${key}`, inner));
}

function text(value: unknown): string {
  if (value === null || value === undefined) return '-';
  return value instanceof Date ? value.toISOString() : `${value as string | number | boolean}`;
}
