// OpenAPI 3.1 made from the contract. docs/openapi.json is this, checked in; the service serves it.

import { z } from 'zod';
import { type ErrorEntry, type ErrorName, errors } from './errors.ts';
import { sizeInWords } from './limits.ts';
import { errorsOf } from './route-errors.ts';
import type { Route } from './route.ts';
import { basePath, routes } from './routes.ts';

type Json = Record<string, unknown>;

const errorSchema: Json = {
  type: 'object',
  required: ['error', 'request_id'],
  properties: {
    error: { type: 'string', description: 'For a person; never match on it.' },
    request_id: { type: 'string', format: 'uuid', description: 'Equals the header X-Request-ID.' },
    reason: { type: 'string', description: 'One word to switch on.' },
    code: { type: 'string', description: 'Route-specific detail.' },
  },
};

const headers: Json = {
  'X-Request-ID': { schema: { type: 'string', format: 'uuid' } },
  'RateLimit-Limit': { schema: { type: 'integer' }, description: 'Units of the binding bucket.' },
  'RateLimit-Remaining': { schema: { type: 'integer' } },
  'RateLimit-Reset': { schema: { type: 'integer' }, description: 'Seconds until refilled.' },
};

export function openapiDocument(): Json {
  const schemas: Json = { Error: errorSchema };
  const paths: Record<string, Json> = {};
  for (const [name, route] of Object.entries<Route>(routes)) {
    const path = (paths[route.path] ??= {});
    path[route.method.toLowerCase()] = operation(name, route, schemas);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Cubicle',
      version: '1.0.0',
      summary: 'Full cloud computers that programs and agents see, control and operate.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: basePath }],
    security: [{ key: [] }],
    paths,
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'An API key.' } },
      headers,
      schemas,
    },
  };
}

function operation(name: string, route: Route, schemas: Json): Json {
  const parameters = parametersOf(route);
  return {
    operationId: name,
    summary: route.summary,
    description: `${route.prose}\n\nRole: ${route.role}+. Cost: ${route.cost}. Source: ${route.source}.`,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...requestBody(route, schemas),
    responses: { ...answers(route, schemas), ...errorResponses(errorsOf(route)) },
  };
}

function parametersOf({ path, query, idempotent }: Route): Json[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
  const inPath = names.map((name) => parameter('path', name, { type: 'string' }, true));
  const { properties = {}, required = [] } =
    query === undefined
      ? {}
      : (z.toJSONSchema(query, { io: 'input', unrepresentable: 'any' }) as {
          properties?: Record<string, Json>;
          required?: string[];
        });
  const inQuery = Object.entries(properties).map(([name, schema]) =>
    parameter('query', name, schema, required.includes(name)),
  );
  const key = parameter('header', 'Idempotency-Key', { type: 'string', maxLength: 255 }, false);
  return [...inPath, ...inQuery, ...(idempotent ? [key] : [])];
}

function parameter(place: string, name: string | undefined, schema: Json, required: boolean): Json {
  return { name, in: place, required, schema };
}

function requestBody({ body, document, upload }: Route, schemas: Json): Json {
  const cap = (body ?? document ?? upload)?.cap;
  if (cap === undefined) return {};
  const described = body ?? document;
  const schema =
    described === undefined
      ? { type: 'string', format: 'binary' }
      : schemaOf(described.schema, 'input', schemas);
  const types = described === undefined ? ['application/octet-stream'] : ['application/json'];
  if (document !== undefined) types.push('application/yaml');
  const content = Object.fromEntries(types.map((type) => [type, { schema }]));
  return { requestBody: { required: true, description: `At most ${sizeInWords(cap)}.`, content } };
}

function answers({ answer, summary }: Route, schemas: Json): Json {
  const content =
    answer.mediaType === undefined
      ? { 'application/json': { schema: schemaOf(answer.schema, 'output', schemas) } }
      : { [answer.mediaType]: { schema: { type: 'string', format: 'binary' } } };
  const told = { description: summary, headers: headerReferences(), content };
  return {
    [answer.status]: told,
    ...(answer.also === undefined ? {} : { [answer.also]: told }),
  };
}

function errorResponses(names: readonly ErrorName[]): Json {
  const byStatus = Map.groupBy(new Set(names), (name) => errors[name].status);
  return Object.fromEntries(
    [...byStatus]
      .toSorted(([a], [b]) => a - b)
      .map(([status, group]) => [
        status,
        {
          description: group.map((name) => describe(errors[name])).join('\n'),
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
      ]),
  );
}

function describe({ reason, meaning }: ErrorEntry): string {
  return reason === undefined ? meaning : `\`${reason}\`: ${meaning}`;
}

function headerReferences(): Json {
  return Object.fromEntries(
    Object.keys(headers).map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );
}

/** A named schema goes to the components once and is referred to from then on. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output', schemas: Json): Json {
  const {
    $schema: _,
    $defs = {},
    ...own
  } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json & { $defs?: Json };
  for (const [name, definition] of Object.entries($defs)) {
    schemas[name] = referToComponents(definition);
  }
  const id = own['id'];
  const body = referToComponents(own) as Json;
  if (typeof id !== 'string') return body;
  schemas[id] = body;
  return { $ref: `#/components/schemas/${id}` };
}

function referToComponents(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(referToComponents);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== 'id' || typeof value['id' as never] !== 'string')
      .map(([key, inner]) => [
        key,
        key === '$ref' && typeof inner === 'string'
          ? inner.replace('#/$defs/', '#/components/schemas/')
          : referToComponents(inner),
      ]),
  );
}
