import assert from 'node:assert/strict';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, suite, test } from 'node:test';
import { upstreamError } from '../../packages/server/hosts/upstream.ts';

suite('errors of an upstream', () => {
  const servers: Server[] = [];
  after(() => servers.forEach((server) => server.close()));

  /** What becomes of an upstream's answer, read over a real connection. */
  async function relayed(listener: RequestListener, bounds?: { bytes: number; ms: number }) {
    const server = createServer(listener);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const body = await upstreamError(response.body, bounds);
    server.closeAllConnections();
    return { status: response.status, body };
  }

  const json =
    (value: unknown): RequestListener =>
    (_request, response) => {
      response.writeHead(409, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    };

  function assertEnvelope(
    { status, body }: Awaited<ReturnType<typeof relayed>>,
    expected: number,
  ): void {
    assert.equal(status, expected);
    assert.deepEqual(Object.keys(body), ['error']);
    assert.ok(JSON.stringify(body).length < 500);
  }

  test('Part 1 8: a readable error passes through, without its own correlation', async () => {
    const given = {
      error: 'busy',
      reason: 'contention',
      move: { required: true, possible: false },
    };
    const { status, body } = await relayed(json({ ...given, request_id: 'theirs' }));
    assert.equal(status, 409);
    assert.deepEqual(body, given);
  });

  test('Part 1 8: non-JSON, malformed and foreign shapes become the small envelope under the same status', async () => {
    for (const text of [
      '<html>Bad Gateway</html>',
      '',
      '{',
      '[]',
      'null',
      '"x"',
      '{"message":"x"}',
      '{"error":{"a":1}}',
    ]) {
      const answer = await relayed((_request, response) => {
        response.writeHead(502).end(text);
      });
      assertEnvelope(answer, 502);
    }
    const latin = await relayed((_request, response) => {
      response.writeHead(500).end(Buffer.from([0x7b, 0xff, 0x7d]));
    });
    assertEnvelope(latin, 500);
  });

  test('Part 1 8: an oversized error body is not read on', async () => {
    const exact = 1_048_576;
    const padded = (size: number) => `{"error":"x"${' '.repeat(size - 13)}}`;
    const fits = await relayed((_request, response) => {
      response.writeHead(503).end(padded(exact));
    });
    assert.equal(fits.body.error, 'x');
    const over = await relayed((_request, response) => {
      response.writeHead(503).end(padded(exact + 1));
    });
    assertEnvelope(over, 503);
  });

  test('Part 1 8: a stalled error body is given up', async () => {
    const answer = await relayed(
      (_request, response) => {
        response.writeHead(504).write('{"error":');
      },
      { bytes: 1_000, ms: 50 },
    );
    assertEnvelope(answer, 504);
  });

  test('Part 1 8: an aborted error body becomes the envelope', async () => {
    const answer = await relayed((_request, response) => {
      response.writeHead(500, { 'content-length': '100' });
      response.write('{"error":"x"');
      setImmediate(() => response.destroy());
    });
    assertEnvelope(answer, 500);
  });

  test('Part 1 8: an answer without a body becomes the envelope', async () => {
    assert.deepEqual(Object.keys(await upstreamError(null)), ['error']);
  });
});
