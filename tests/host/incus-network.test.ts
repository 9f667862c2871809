/** Proves that a guest reaches the internet and nothing nearer: neither the host, nor guests, nor private networks. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { resolve } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { canRunEngine } from '../../packages/host/engine/incus/install.ts';
import { until } from '../support/until.ts';
import { live, newId, specOf } from './engine-suite.ts';
import { IncusGround } from './incus-ground.ts';

const run = promisify(execFile);
const ip = (...args: string[]) => run('ip', args);

const ability = await canRunEngine();
if (!ability.can) test('the network of guests', { skip: ability.reason });
else describe('the network of guests', network);

/** Addresses of a machine beyond the host, one per kind; the public one stands for the internet. */
const beyond = {
  public: '198.51.100.77',
  ten: '10.213.77.77',
  twelve: '172.31.213.77',
  sixteen: '192.168.213.77',
  shared: '100.64.213.77',
  link: '169.254.213.77',
};

function network(): void {
  let ground: IncusGround;
  let outside: Outside;
  let host: Server;
  let guest: string;
  let other: string;

  before(async () => {
    ground = await IncusGround.open();
    outside = await Outside.make();
    host = createServer((_, response) => response.end('reached'));
    // Every address of the host, of both families.
    host.listen(0, '::');
    await once(host, 'listening');
    [guest = '', other = ''] = await Promise.all([running(), running()]);
    for (const id of [guest, other]) {
      await until('the guest has an address', async () => (await addressOf(id)) !== '');
    }
  });

  after(async () => {
    host?.close();
    await outside?.remove();
    await ground?.close();
  });

  const running = async () => {
    const id = newId();
    await ground.engine.create(live, specOf(id), ground.digest);
    await ground.engine.start(live, id);
    return id;
  };
  const addressOf = async (id: string) =>
    /inet (\d[\d.]+)\//.exec((await ground.exec(id, 'ip -4 address show dev eth0')).output)?.[1] ??
    '';
  const gateway = async () =>
    (await ground.exec(guest, `ip route show default`)).output.split(' ')[2] ?? '';
  /** All at once, as each refusal is a silence. Which of the addresses answer? */
  const reached = async (port: number, addresses: readonly string[], from = guest) => {
    const tries = addresses.map(
      (address) =>
        `(printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 ${address} ${port} | grep -q reached && echo ${address}) &`,
    );
    const { output } = await ground.exec(from, `${tries.join('\n')}\nwait`);
    return output.split('\n').filter((line) => line !== '');
  };
  /** On a slow machine an answer may come too late. */
  const untilReached = (port: number, addresses: readonly string[], from = guest) =>
    until(`${addresses.join(' and ')} answer`, async () => {
      return (await reached(port, addresses, from)).length === addresses.length;
    });

  test('the internet is reached, and no private network beyond the host', async () => {
    const { public: internet, ...nearer } = beyond;
    await untilReached(outside.port, [internet]);
    assert.deepEqual(await reached(outside.port, Object.values(nearer)), []);
  });

  test('no address of the host is reached', async () => {
    const addresses = Object.values(networkInterfaces())
      .flatMap((all) => all ?? [])
      .filter(({ internal }) => !internal)
      .map(({ address }) => address);
    assert.ok(addresses.includes(await gateway()), 'the bridge’s address is among them');
    const { port } = host.address() as AddressInfo;
    assert.deepEqual(await reached(port, addresses), []);
  });

  test('the bridge’s name server answers, and tells nothing of the host', async () => {
    const address = await gateway();
    // A question that dnsmasq answers by itself: version.bind, TXT, CHAOS. Over TCP its length goes first.
    const question = `\\0\\001\\001\\0\\0\\001\\0\\0\\0\\0\\0\\0\\007version\\004bind\\0\\0\\020\\0\\003`;
    const ask = `printf '\\0\\036${question}' | nc -w 2 ${address} 53 | grep -c dnsmasq`;
    await until('it answers', async () => (await ground.exec(guest, ask)).output === '1\n');
    // Over UDP, where the host itself has somebody to ask.
    const answered = await resolve('cubicle.invalid').catch(({ code }: { code: string }) => code);
    const { output } = await ground.exec(guest, 'nslookup localhost.');
    if (answered === 'ENOTFOUND') assert.doesNotMatch(output, /timed out|no servers/);
    assert.doesNotMatch(output, /Address.*127\.0\.0\.1/);
  });

  test('no other guest is reached, over either family', async () => {
    const serve = `mkdir -p /tmp/web && echo reached > /tmp/web/index.html && httpd -p 8099 -h /tmp/web`;
    assert.equal((await ground.exec(other, serve)).code, 0);
    const neighbour = await addressOf(other);
    const shown = (await ground.exec(other, 'ip -6 address show dev eth0')).output;
    const local = `${/inet6 (fe80[^/]+)\//.exec(shown)?.[1]}%eth0`;
    const both = [neighbour, local];
    // An address of the second family is not used before it has been found to be nobody else's.
    await untilReached(8_099, both, other);
    assert.deepEqual(await reached(8_099, both), []);
    // Nor heard: this passes no rule for packets, only the isolation of the bridge's ports.
    const heard = await ground.exec(guest, `arping -c 2 -w 2 -I eth0 ${neighbour}`);
    assert.match(heard.output, /Received 0 response/);
    // Nor by way of the host: the neighbour's address behind the gateway's.
    await ground.exec(guest, `ip route add ${neighbour}/32 via ${await gateway()}`);
    assert.deepEqual(await reached(8_099, [neighbour]), []);
  });

  test('a guest cannot take an address that it was not given', async () => {
    const [mine, way] = [await addressOf(guest), await gateway()];
    // The last but one of the guests' /22, which nobody has: answers to it would find their way.
    const taken = way.replace(/(\d+)\.\d+$/, (_, third: string) => `${Number(third) + 3}.253`);
    const speakAs = (source: string) =>
      ground.exec(guest, `ip route replace ${beyond.public}/32 via ${way} src ${source}`);
    await ground.exec(guest, `ip address add ${taken}/32 dev eth0`);
    assert.equal((await speakAs(taken)).code, 0);
    assert.deepEqual(await reached(outside.port, [beyond.public]), []);
    await speakAs(mine);
    await untilReached(outside.port, [beyond.public]);
  });

  test('rules that somebody flushed are back before the next guest runs', async () => {
    await run('nft', ['delete', 'table', 'inet', ground.place.table]);
    const id = await running();
    const { stdout } = await run('nft', ['list', 'table', 'inet', ground.place.table]);
    assert.match(stdout, /169\.254\.0\.0\/16/);
    await ground.engine.delete(live, id);
  });
}

/** A machine beyond the host: a network namespace with a web server on every address. */
class Outside {
  readonly port = 8_077;
  readonly #undo: (() => Promise<unknown>)[] = [];

  static async make(): Promise<Outside> {
    const outside = new Outside();
    try {
      await outside.#make(`cubt${process.pid}`);
    } catch (error) {
      await outside.remove();
      throw error;
    }
    return outside;
  }

  async #make(name: string): Promise<void> {
    const inside = (...args: string[]) => ip('-n', name, ...args);
    await ip('netns', 'add', name);
    this.#undo.push(() => ip('netns', 'delete', name));
    await ip('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
    // A namespace that is gone takes a while to let go of its end.
    this.#undo.push(() => ip('link', 'delete', name));
    // Out of the range for benchmarks, which nobody routes.
    await ip('address', 'add', '198.18.77.1/30', 'dev', name);
    await ip('link', 'set', name, 'up');
    await inside('address', 'add', '198.18.77.2/30', 'dev', 'eth0');
    for (const device of ['lo', 'eth0']) await inside('link', 'set', device, 'up');
    await inside('route', 'add', 'default', 'via', '198.18.77.1');
    for (const address of Object.values(beyond)) {
      await inside('address', 'add', `${address}/32`, 'dev', 'lo');
      await ip('route', 'add', `${address}/32`, 'via', '198.18.77.2');
    }
    await this.#serve(name);
    // From the host itself each is there: a guest's silence is the firewall's doing.
    for (const address of Object.values(beyond)) {
      const answer = await fetch(`http://${address}:${this.port}/`);
      assert.equal(await answer.text(), 'reached');
    }
  }

  async #serve(name: string): Promise<void> {
    const script = `require('http').createServer((_, answer) => answer.end('reached')).listen(${this.port}, () => console.log('up'))`;
    const server = spawn('ip', ['netns', 'exec', name, process.execPath, '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(server, 'exit');
    this.#undo.push(() => {
      server.kill('SIGKILL');
      return exited;
    });
    await once(server.stdout, 'data');
  }

  async remove(): Promise<void> {
    for (const undo of this.#undo.toReversed()) await undo();
  }
}
