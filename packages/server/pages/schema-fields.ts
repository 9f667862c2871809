// Flattens a JSON Schema into rows that a person can read.

export interface Schema {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  const?: unknown;
  pattern?: string;
  format?: string;
  description?: string;
  items?: Schema;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
}

export interface FieldRow {
  readonly path: string;
  readonly type: string;
  readonly note: string;
}

export function fieldRows(
  schema: Schema,
  named: Readonly<Record<string, Schema>>,
  prefix = '',
): FieldRow[] {
  const known = resolve(schema, named);
  if (known.type === 'array') return fieldRows(known.items ?? {}, named, prefix);
  if (prefix === '' && known.anyOf) return eitherOf(known.anyOf, named);
  return Object.entries(known.properties ?? {}).flatMap(([name, given]) => {
    const path = prefix + name;
    const field = resolve(given, named);
    const optional = known.required?.includes(name) ? '' : 'Optional. ';
    const row = { path, type: typeOf(field, named), note: optional + (field.description ?? '') };
    const inner = [field, ...(field.anyOf ?? [])].map((option) => resolve(option, named));
    return [row, ...inner.flatMap((option) => fieldRows(option, named, `${path}.`))];
  });
}

/** One of several shapes: the fields of each, those that they share once. */
function eitherOf(options: readonly Schema[], named: Readonly<Record<string, Schema>>): FieldRow[] {
  const rows = options.flatMap((option) => fieldRows(option, named));
  return [...new Map(rows.map((row) => [row.path, row])).values()];
}

function resolve(schema: Schema, named: Readonly<Record<string, Schema>>): Schema {
  const name = schema.$ref?.split('/').at(-1);
  return name === undefined ? schema : { ...named[name], ...schema };
}

function typeOf(schema: Schema, named: Readonly<Record<string, Schema>>): string {
  if (schema.anyOf) {
    return schema.anyOf.map((option) => typeOf(resolve(option, named), named)).join(' or ');
  }
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(', ');
  if (schema.format === 'date-time') return 'timestamp';
  return schema.type ?? 'any';
}
