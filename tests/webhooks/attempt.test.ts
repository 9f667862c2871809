import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createSecureServer } from 'node:http2';
import { type AddressInfo, createServer as createPlainServer, type Server } from 'node:net';
import { after, suite, test } from 'node:test';
import { AddressCheck } from '../../packages/server/webhooks/address.ts';
import { Sender, type SenderParts } from '../../packages/server/webhooks/attempt.ts';
import type { Lookup } from '../../packages/server/webhooks/names.ts';
import { readNetwork } from '../../packages/server/webhooks/networks.ts';
import { newSecret, secretText } from '../../packages/server/webhooks/signature.ts';
import { type Answering, authority, Receiver, status, verified } from '../support/receiver.ts';
import { until } from '../support/until.ts';

const never = new AbortController().signal;
const opened = [readNetwork('127.0.0.0/8')].filter((network) => network !== undefined);
const secret = newSecret();
const shipment = (url: string, body = '{"type":"webhook.test"}') => ({
  id: 'whd-0123456789abcdef',
  subscription: 'whk-0123456789abcdef',
  url,
  body,
  secrets: [secret],
});

suite('one attempt', () => {
  const senders: Sender[] = [];
  const receivers: Receiver[] = [];
  const servers: Server[] = [];
  after(async () => {
    for (const sender of senders) sender.close();
    for (const receiver of receivers) await receiver.stop();
    for (const server of servers) server.close();
  });

  const sender = ({ lookUp, ...parts }: Partial<SenderParts> & { lookUp?: Lookup } = {}) => {
    const check = new AddressCheck({ opened, ...(lookUp && { lookUp }) });
    const made = new Sender({ check, date: () => new Date(), authority: authority.cert, ...parts });
    senders.push(made);
    return made;
  };
  const receiver = async (...wish: Parameters<typeof Receiver.start>) => {
    const made = await Receiver.start(...wish);
    receivers.push(made);
    return made;
  };
  /** What comes of a POST to a receiver that answers so. */
  const meet = async (answer: Answering, parts: Parameters<typeof sender>[0] = {}) => {
    const { url } = await receiver(answer);
    const { ok, status: code, error } = await sender(parts).send(shipment(url), never);
    return [ok, code, error];
  };
  const short = { timeoutMs: 300 };

  test('Part 6.1 1: every 2xx acknowledges; everything else does not, and says why', async () => {
    for (const code of [200, 201, 204, 299]) {
      assert.deepEqual(await meet(status(code)), [true, code, null]);
    }
    for (const code of [304, 400, 404, 410, 429, 500, 503]) {
      assert.deepEqual(await meet(status(code)), [false, code, `status ${code}`]);
    }
  });

  test('Part 6.1 1: a redirect is not followed', async () => {
    const beyond = await receiver();
    for (const code of [301, 302, 303, 307, 308]) {
      const answer = status(code, { location: beyond.url });
      assert.deepEqual(await meet(answer), [false, code, 'redirect']);
    }
    assert.deepEqual(beyond.received, []);
  });

  test('Part 6.1 1, Part 8 Sizes: slow headers, a slow body and a look-up without end are cut', async () => {
    assert.deepEqual(await meet(() => {}, short), [false, null, 'timeout']);
    const drips: Answering = (_request, response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write('.'), 20);
      response.once('close', () => clearInterval(drip));
    };
    assert.deepEqual(await meet(drips, short), [false, null, 'timeout']);
    const lookUp: Lookup = () => new Promise(() => {});
    const stuck = await sender({ ...short, lookUp }).send(shipment('https://slow.example/'), never);
    assert.deepEqual([stuck.ok, stuck.error], [false, 'timeout']);
    // Neither a handshake nor anything else.
    const mute = createPlainServer(() => {});
    servers.push(mute);
    await once(mute.listen(0, '127.0.0.1'), 'listening');
    const { port } = mute.address() as AddressInfo;
    const silent = await sender(short).send(shipment(`https://127.0.0.1:${port}/`), never);
    assert.deepEqual([silent.ok, silent.error], [false, 'timeout']);
  });

  test('Part 6.1 1: an endless body is read to a bound and dropped', async () => {
    let sent = 0;
    const endless: Answering = (_request, response) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(16_384, '.');
      const pour = () => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length;
      };
      response.on('drain', pour);
      pour();
    };
    assert.deepEqual(await meet(endless), [true, 200, null]);
    assert.ok(sent < 64 * 1024 * 1024, `${sent} bytes`);
  });

  test('Part 6.1 1: reset, refused, unreachable names and broken answers have their words', async () => {
    assert.deepEqual(await meet((request) => request.socket.destroy()), [false, null, 'reset']);
    const closed = await Receiver.start();
    const { url } = closed;
    await closed.stop();
    assert.equal((await sender().send(shipment(url), never)).error, 'refused');
    const nowhere = await sender().send(shipment('https://nowhere.invalid/'), never);
    assert.equal(nowhere.error, 'dns');
    const garbage: Answering = (request) => request.socket.end('SSH-2.0-OpenSSH\r\n\r\n');
    assert.deepEqual(await meet(garbage), [false, null, 'malformed answer']);
    const cut: Answering = (request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half', () => request.socket.destroy());
    };
    assert.deepEqual(await meet(cut), [false, null, 'reset']);
  });

  test('Part 6.1 1: certificates that are forged, expired or of another name are refused', async () => {
    const names = ['127.0.0.1'];
    const past = new Date(Date.now() - 3_600_000);
    for (const certificate of [
      authority.forge({ names }),
      authority.issue({ names, until: past }),
      authority.issue({ names: ['other.example'] }),
    ]) {
      const { url, received } = await receiver(status(200), certificate);
      const { ok, error } = await sender().send(shipment(url), never);
      assert.deepEqual([ok, error, received], [false, 'tls', []]);
    }
    const { url } = await receiver();
    const distrusting = sender({ authority: undefined });
    assert.equal((await distrusting.send(shipment(url), never)).error, 'tls');
    const plain = createPlainServer((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'));
    servers.push(plain);
    await once(plain.listen(0, '127.0.0.1'), 'listening');
    const { port } = plain.address() as AddressInfo;
    const unsafe = await sender().send(shipment(`https://127.0.0.1:${port}/`), never);
    assert.equal(unsafe.error, 'tls');
  });

  test('Part 6.1 1: a receiver of HTTP/2 alone is a failed attempt, not a hang', async () => {
    const certificate = authority.issue({ names: ['127.0.0.1'] });
    const server = createSecureServer({ ...certificate, allowHTTP1: false });
    server.on('sessionError', () => {});
    server.on('unknownProtocol', (socket) => socket.destroy());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const result = await sender().send(shipment(`https://127.0.0.1:${port}/`), never);
    server.close();
    assert.equal(result.ok, false);
    assert.ok(['tls', 'reset'].includes(result.error ?? ''), result.error ?? '');
  });

  test('Part 6.1 1: a connection is used again, and one that was closed meanwhile costs no attempt', async () => {
    const kept = await receiver();
    const one = sender();
    for (let n = 0; n < 3; n += 1) {
      assert.equal((await one.send(shipment(kept.url), never)).ok, true);
    }
    assert.equal(kept.connections, 1);
    kept.closeConnections();
    assert.equal((await one.send(shipment(kept.url), never)).ok, true);
    // Closed just when the next request arrives on it.
    let first = true;
    kept.answer = (request, response) => {
      if (first) request.socket.destroy();
      else response.end();
      first = false;
    };
    assert.equal((await one.send(shipment(kept.url), never)).ok, true);
    const ids = new Set(kept.received.map(({ headers }) => headers['webhook-signature']));
    assert.ok(kept.received.length >= 6 && ids.size <= kept.received.length);
  });

  test('Part 6.1 1: the headers of an attempt, verified by the public library', async () => {
    const heard = await receiver();
    const clock = { now: new Date() };
    const one = sender({ date: () => clock.now });
    const body = '{"type":"window.opened","data":{"title":"Ünïcode ✓ 🧊"}}';
    await one.send(shipment(heard.url, body), never);
    const [received] = heard.received;
    assert.ok(received);
    assert.equal(received.body, body);
    const { headers } = received;
    assert.deepEqual(
      [headers['content-type'], headers['user-agent'], headers['webhook-id']],
      ['application/json', 'Service-Webhooks/1', 'whd-0123456789abcdef'],
    );
    assert.equal(headers['webhook-subscription'], 'whk-0123456789abcdef');
    assert.equal(headers['webhook-timestamp'], String(Math.floor(clock.now.getTime() / 1_000)));
    assert.deepEqual(verified(secretText(secret), received), JSON.parse(body));
    assert.throws(() => verified(secretText(newSecret()), received));
    assert.throws(() => verified(secretText(secret), { ...received, body: `${body} ` }));
  });

  test('Part 4 Webhooks 1: the address connected to is the one that was checked, on every attempt', async () => {
    const target = await receiver();
    const url = `https://receiver.example:${target.port}/`;
    let answers: string[][] = [];
    const asked: string[] = [];
    const lookUp: Lookup = async (host) => {
      asked.push(host);
      return answers.shift() ?? ['10.0.0.1'];
    };
    const one = sender({ lookUp });
    answers = [['127.0.0.1']];
    assert.equal((await one.send(shipment(url), never)).ok, true);
    assert.deepEqual(asked, ['receiver.example'], 'asked once, not again for the connection');
    // The name now leads elsewhere, and a connection to where it led is still open.
    for (const answer of [['10.0.0.1'], ['127.0.0.1', '169.254.169.254'], ['::ffff:127.0.0.1']]) {
      answers = [answer];
      const { ok, error } = await one.send(shipment(url), never);
      assert.deepEqual([ok, error], [false, 'address refused']);
    }
    // To another address that may be reached the kept connection does not lead.
    answers = [['127.0.0.2']];
    assert.notEqual((await one.send(shipment(url), never)).ok, true);
    assert.equal(target.received.length, 1);
    answers = [[]];
    assert.equal((await one.send(shipment(url), never)).error, 'dns');
  });

  test('a receiver puts the next attempt off with 429 and 503, in seconds or by a date', async () => {
    const putOff = async (code: number, wish: string) => {
      const { url } = await receiver(status(code, { 'retry-after': wish }));
      return (await sender().send(shipment(url), never)).retryAfterMs;
    };
    assert.equal(await putOff(429, '120'), 120_000);
    const later = new Date(Date.now() + 60_000).toUTCString();
    const ms = await putOff(503, later);
    assert.ok(ms !== undefined && ms > 0 && ms <= 60_000);
    assert.equal(await putOff(429, '999999999'), 86_400_000);
    for (const wish of ['-1', 'soon', '0']) assert.equal(await putOff(429, wish), undefined);
    assert.equal(await putOff(500, '120'), undefined);
  });

  test('an attempt that is broken off from outside throws and leaves no connection', async () => {
    const slow = await receiver(() => {});
    const ending = new AbortController();
    const attempt = sender().send(shipment(slow.url), ending.signal);
    await until('it has arrived', () => slow.open.now === 1);
    ending.abort();
    await assert.rejects(attempt);
    await until('its connection is closed', () => slow.open.now === 0);
  });
});
