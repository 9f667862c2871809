import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite, test } from 'node:test';
import { errors, type ErrorEntry, Refusal } from '../../packages/contract/errors.ts';
import { openapiDocument } from '../../packages/contract/openapi.ts';
import { errorsOf, errorsOutsideRoutes } from '../../packages/contract/route-errors.ts';
import type { Route } from '../../packages/contract/route.ts';
import { routes } from '../../packages/contract/routes.ts';

const file = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const all = Object.entries<Route>(routes);

suite('the contract', () => {
  test('the error registry, its page and what routes may raise name the same errors', () => {
    const raised = new Set([
      ...all.flatMap(([, route]) => errorsOf(route)),
      ...errorsOutsideRoutes,
    ]);
    assert.deepEqual([...raised].toSorted(), Object.keys(errors).toSorted());
    const page = [...file('docs/errors.md').matchAll(/^`(\w+)` \|/gm)].map((match) => match[1]);
    assert.deepEqual(page.toSorted(), Object.keys(errors).toSorted());
  });

  test('Part 7: reasons and statuses are those of the specification', () => {
    const known: Record<number, (string | undefined)[]> = {
      400: [undefined],
      401: ['missing', 'invalid', 'revoked'],
      402: [undefined],
      403: [undefined, 'revoked'],
      404: [undefined],
      405: [undefined],
      408: [undefined],
      409: [
        undefined,
        'contention',
        'starting',
        'unavailable',
        'running',
        'unsupported',
        'exists',
        'stale_capture',
        'name_taken',
        'stale_revision',
      ],
      413: [undefined],
      416: [undefined],
      422: [undefined],
      429: [undefined],
      431: [undefined],
      500: [undefined],
      501: [undefined],
      502: [undefined],
      503: [undefined],
      504: [undefined],
    };
    for (const [name, { status, reason }] of Object.entries<ErrorEntry>(errors)) {
      assert.ok(known[status]?.includes(reason), name);
    }
  });

  test('a sentence that needs a word cannot be raised without it', () => {
    assert.throws(() => new Refusal('body_too_large'));
    assert.equal(
      new Refusal('body_too_large', { limit: '1 byte' }).body().error,
      'The request body is larger than 1 byte.',
    );
  });

  test('OpenAPI describes every route, and refers only to what it defines', () => {
    const document = JSON.stringify(openapiDocument());
    assert.deepEqual(JSON.parse(file('docs/openapi.json')), JSON.parse(document));
    const { paths, components } = JSON.parse(document);
    for (const [name, route] of all) {
      assert.equal(paths[route.path][route.method.toLowerCase()].operationId, name);
    }
    for (const [, kind, name] of document.matchAll(/#\/components\/(\w+)\/([\w-]+)/g)) {
      assert.ok(components[kind as string][name as string], `${kind} ${name}`);
    }
    assert.ok(!document.includes('$defs'));
  });
});
