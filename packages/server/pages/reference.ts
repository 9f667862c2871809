// The API reference at /docs: one page made from the contract, complete without the internet.

import { readFileSync } from 'node:fs';
import { openapiDocument } from '@cubicle/contract/openapi.ts';
import { type ErrorEntry, errors } from '@cubicle/contract/errors.ts';
import { sizeInWords } from '@cubicle/contract/limits.ts';
import { errorsOf } from '@cubicle/contract/route-errors.ts';
import type { Route } from '@cubicle/contract/route.ts';
import { basePath, routes } from '@cubicle/contract/routes.ts';
import { type FieldRow, fieldRows, type Schema } from './schema-fields.ts';
import { type Html, html, join } from './html.ts';

const style = readFileSync(new URL('./reference.css', import.meta.url), 'utf8');

let made: string | undefined;

export function referencePage(): string {
  return (made ??= page().toString());
}

function page(): Html {
  const all = Object.entries<Route>(routes);
  const groups = Map.groupBy(all, ([, route]) => route.path.split('/')[1] ?? '');
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>Cubicle API reference</title>
        <style>
          ${html.raw(style)}
        </style>
      </head>
      <body>
        <nav>
          <a class="brand" href="#top">Cubicle <small>API 1.0.0</small></a>
          <a href="#basics">Basics</a>
          ${join([...groups].map(([group, members]) => navigation(group, members)))}
          <h2>More</h2>
          <a href="#errors">Errors</a>
          <a href="/openapi.json">openapi.json</a>
        </nav>
        <main id="top">
          ${basics()} ${join(all.map(([name, route]) => section(name, route)))} ${errorTable()}
        </main>
      </body>
    </html> `;
}

function navigation(group: string, members: readonly [string, Route][]): Html {
  return html`<h2>${group}</h2>
    ${join(
      members.map(
        ([name, route]) =>
          html`<a href="#${name}"
            ><b class="${route.method}">${route.method}</b> ${route.summary}</a
          >`,
      ),
    )}`;
}

function basics(): Html {
  return html`<section id="basics">
    <h1>API reference</h1>
    <p>Every path below is relative to <code>${basePath}</code>. Requests and answers are JSON.</p>
    <pre>curl -H "Authorization: Bearer $CUBICLE_API_KEY" "$CUBICLE_BASE_URL/whoami"</pre>
    <ul>
      <li>
        Each request carries an API key as a bearer token. A key acts as one account, and may be
        confined to one workspace of it.
      </li>
      <li>
        Each answer carries <code>X-Request-ID</code>; error bodies repeat it as
        <code>request_id</code>.
      </li>
      <li>
        Each metered answer tells the rate budget that binds in <code>RateLimit-Limit</code>,
        <code>RateLimit-Remaining</code> and <code>RateLimit-Reset</code>. A call’s cost is taken
        when it is admitted; a refusal at the door costs 1.
      </li>
      <li>Every GET also answers HEAD. OPTIONS tells a path’s methods without a key.</li>
      <li>Paths have no trailing slash; one with it is redirected (308).</li>
    </ul>
  </section>`;
}

function bodyCap({ body, document }: Route): Html | string {
  const cap = (body ?? document)?.cap;
  return cap === undefined ? '' : html`<span>body at most <b>${sizeInWords(cap)}</b></span>`;
}

function section(name: string, route: Route): Html {
  const { query, request, answer } = schemasOf(route);
  return html`<section id="${name}">
    <h2><b class="${route.method}">${route.method}</b> <code>${route.path}</code></h2>
    <p class="summary">${route.summary}</p>
    <p>${words(route.prose)}</p>
    <p class="facts">
      <span>role <b>${route.role}+</b></span
      ><span>cost <b>${route.cost}</b></span
      >${route.reach === 'account' ? html`<span>account-wide key</span>` : ''}${
        route.idempotent ? html`<span>honours <code>Idempotency-Key</code></span>` : ''
      }${bodyCap(route)}
    </p>
    ${
      query.length > 0
        ? html`<h3>Query</h3>
            ${table(query)}`
        : ''
    }
    ${
      request
        ? html`<h3>Request</h3>
            ${fields(request)}`
        : ''
    }
    <h3>Answer <code>${route.answer.status}</code></h3>
    ${answer ? fields(answer) : html`<p>${route.answer.mediaType ?? ''}</p>`}
    <details>
      <summary>Errors</summary>
      ${errorRows(errorsOf(route).map((error) => errors[error]))}
    </details>
  </section>`;
}

/** What stands between backticks is code. */
function words(text: string): Html {
  const parts = text
    .split('`')
    .map((part, i) => (i % 2 === 0 ? html`${part}` : html`<code>${part}</code>`));
  return join(parts, '');
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: Schema;
}

interface Operation {
  parameters?: Parameter[];
  requestBody?: { content: { 'application/json'?: { schema: Schema } } };
  responses: Record<string, { content: { 'application/json'?: { schema: Schema } } }>;
}

const document = openapiDocument() as {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
};

interface Schemas {
  readonly query: FieldRow[];
  /** Absent where what is sent is no JSON. */
  readonly request: Schema | undefined;
  readonly answer: Schema | undefined;
}

function schemasOf(route: Route): Schemas {
  const operation = document.paths[route.path]?.[route.method.toLowerCase()] as Operation;
  const asked = (operation.parameters ?? []).filter((parameter) => parameter.in === 'query');
  const query: Schema = {
    type: 'object',
    properties: Object.fromEntries(asked.map(({ name, schema }) => [name, schema])),
    required: asked.filter(({ required }) => required).map(({ name }) => name),
  };
  return {
    query: fieldRows(query, document.components.schemas),
    request: operation.requestBody?.content['application/json']?.schema,
    answer: operation.responses[route.answer.status]?.content['application/json']?.schema,
  };
}

function fields(schema: Schema): Html {
  return html`${schema.type === 'array' ? html`<p>An array of:</p>` : ''}
  ${table(fieldRows(schema, document.components.schemas))}`;
}

function table(rows: readonly FieldRow[]): Html {
  return html`<table>
    <tr>
      <th>Field</th>
      <th>Type</th>
      <th></th>
    </tr>
    ${join(
      rows.map(
        (row) =>
          html`<tr>
            <td><code>${row.path}</code></td>
            <td>${row.type}</td>
            <td>${words(row.note)}</td>
          </tr>`,
      ),
    )}
  </table>`;
}

function errorTable(): Html {
  return html`<section id="errors">
    <h2>Errors</h2>
    <p>
      A failure is <code>{error, request_id}</code> with an optional <code>reason</code> and
      <code>code</code>. Match on those two, never on the sentence.
    </p>
    ${errorRows(Object.values(errors))}
  </section>`;
}

function errorRows(rows: readonly ErrorEntry[]): Html {
  return html`<table>
    <tr>
      <th>Status</th>
      <th>Reason</th>
      <th>Meaning</th>
      <th>What to do</th>
    </tr>
    ${join(
      rows.map(
        ({ status, reason, meaning, remedy }) =>
          html`<tr>
            <td>${status}</td>
            <td>${reason ? html`<code>${reason}</code>` : ''}</td>
            <td>${words(meaning)}</td>
            <td>${words(remedy)}</td>
          </tr>`,
      ),
    )}
  </table>`;
}
