import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { AddressCheck, AddressRefused } from '../../packages/server/webhooks/address.ts';
import { lookUp } from '../../packages/server/webhooks/names.ts';
import { isPublic, mayReach, readNetwork } from '../../packages/server/webhooks/networks.ts';

const never = new AbortController().signal;
const leadingTo = (...addresses: string[]) => new AddressCheck({ lookUp: async () => addresses });

async function refusal(check: AddressCheck, url: string): Promise<string> {
  try {
    await check.accept(url);
    return 'accepted';
  } catch (error) {
    assert.ok(error instanceof AddressRefused, String(error));
    return error.refusal.why;
  }
}

const notPublic = {
  unspecified: ['0.0.0.0', '0.1.2.3', '::'],
  loopback: ['127.0.0.1', '127.255.255.254', '::1'],
  private: ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fd12:3456::1'],
  'link-local': ['169.254.0.1', 'fe80::1', 'fe80::1%1'],
  'site-local': ['fec0::1'],
  'carriers’ own': ['100.64.0.1', '100.127.255.255'],
  metadata: ['169.254.169.254', 'fd00:ec2::254', '168.63.129.16', '100.100.100.200'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
  documentation: ['192.0.2.1', '198.51.100.7', '203.0.113.9', '2001:db8::1', '3fff::1'],
  benchmarks: ['198.18.0.1', '198.19.255.255', '2001:2::1'],
  reserved: ['240.0.0.1', '255.255.255.255', '192.0.0.8', '192.88.99.1', '5f00::1', '4000::1'],
  mapped: ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:10.0.0.1', '::ffff:8.8.8.8'],
  compatible: ['::127.0.0.1', '::8.8.8.8'],
  NAT64: ['64:ff9b::127.0.0.1', '64:ff9b::a00:1', '64:ff9b::169.254.169.254', '64:ff9b:1::1'],
  '6to4': ['2002:7f00:1::', '2002:a00:1::1', '2002:c0a8:101::1'],
  Teredo: ['2001::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  'no address': ['', 'example.com', '1.2.3', '1.2.3.4.5', '01.2.3.4', '::g'],
};
const open = [
  '1.1.1.1',
  '8.8.8.8',
  '172.15.255.255',
  '172.32.0.1',
  '100.63.255.255',
  '2606:4700::1',
];

suite('addresses', () => {
  test('Part 4 Webhooks 1: nothing but public addresses', () => {
    for (const [kind, addresses] of Object.entries(notPublic)) {
      for (const address of addresses) assert.equal(isPublic(address), false, `${kind} ${address}`);
    }
    for (const address of [...open, '64:ff9b::8.8.8.8']) assert.ok(isPublic(address), address);
  });

  test('Part 4 Webhooks 1: whatever address a private one is written into, it is refused', () => {
    const hidden = fc.constantFrom('127.0.0.1', '10.1.2.3', '192.168.7.7', '169.254.169.254');
    const around = fc.constantFrom('::ffff:', '::', '64:ff9b::', '2002:', '::ffff:0:');
    fc.assert(
      fc.property(hidden, around, (address, prefix) => {
        const hex = Buffer.from(address.split('.').map(Number)).toString('hex');
        const groups = `${hex.slice(0, 4)}:${hex.slice(4)}`;
        const written = prefix === '2002:' ? `2002:${groups}::1` : `${prefix}${groups}`;
        assert.equal(isPublic(written), false, written);
      }),
    );
  });

  test('Part 4 Webhooks 1: literals in every spelling', async () => {
    const check = leadingTo('8.8.8.8');
    for (const host of [
      '127.0.0.1',
      '2130706433',
      '0x7f000001',
      '017700000001',
      '0x7f.1',
      '0177.0.0.1',
      '127.1',
      '127.0.1',
      '１２７.0.0.1',
      '127。0。0。1',
      '127.0.0.1.',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[0:0:0:0:0:ffff:7f00:1]',
      '[64:ff9b::7f00:1]',
      '[fe80::1]',
      '3232235777',
      '0xa9fea9fe',
    ]) {
      assert.equal(await refusal(check, `https://${host}/`), 'refused', host);
    }
    for (const host of ['8.8.8.8', '134744072', '[2606:4700::1]']) {
      assert.equal(await refusal(check, `https://${host}/`), 'accepted', host);
    }
  });

  test('Part 4 Webhooks 1: a name with one address that is not public is refused', async () => {
    const name = 'https://hooks.example/';
    assert.equal(await refusal(leadingTo('8.8.8.8', '1.1.1.1'), name), 'accepted');
    for (const address of Object.values(notPublic).flat()) {
      assert.equal(await refusal(leadingTo('8.8.8.8', address), name), 'refused', address);
      assert.equal(await refusal(leadingTo(address, '8.8.8.8'), name), 'refused', address);
    }
    assert.equal(await refusal(leadingTo(), name), 'unresolved');
  });

  test('Part 4 Webhooks 1: https without credentials, at most 2048 characters, stored as parsed', async () => {
    const check = leadingTo('8.8.8.8');
    for (const url of [
      'http://hooks.example/',
      'ftp://hooks.example/',
      'wss://hooks.example/',
      'file:///etc/passwd',
      'https://',
      'https:///',
      '//hooks.example/',
      'hooks.example',
      '',
      'https://user@hooks.example/',
      'https://user:word@hooks.example/',
      'https://:word@hooks.example/',
      'https://hooks.example:99999/',
      `https://hooks.example/${'x'.repeat(2_048 - 22 + 1)}`,
    ]) {
      assert.equal(await refusal(check, url), 'refused', url);
    }
    const longest = `https://hooks.example/${'x'.repeat(2_048 - 22)}`;
    assert.equal(longest.length, 2_048);
    assert.equal(await check.accept(longest), longest);
    assert.equal(await check.accept('https://HOOKS.Example:443'), 'https://hooks.example/');
    assert.equal(
      await check.accept('HTTPS://hooks.example:8443/A/../b?q=1#f'),
      'https://hooks.example:8443/b?q=1#f',
    );
  });

  test('the operator opens networks by name, and nothing beside them', () => {
    const networks = ['127.0.0.0/8', '10.1.0.0/16', 'fd00::/8', '192.168.1.7'].map(readNetwork);
    const opened = networks.filter((network) => network !== undefined);
    assert.equal(opened.length, 4);
    for (const address of ['127.9.9.9', '10.1.255.1', 'fd99::1', '192.168.1.7', '8.8.8.8']) {
      assert.ok(mayReach(address, opened), address);
    }
    for (const address of ['10.2.0.1', '192.168.1.8', '::1', '::ffff:127.0.0.1', 'fe80::1']) {
      assert.equal(mayReach(address, opened), false, address);
    }
    for (const text of ['', '10.0.0.0/33', '10.0.0/8', 'fd00::/129', 'x/8', '10.0.0.0/8/8', '1/-1'])
      assert.equal(readNetwork(text), undefined, text);
  });

  test('names that are never asked for of a name server', async () => {
    assert.deepEqual(await lookUp('nothing.invalid', never), []);
    for (const name of ['localhost', 'localhost.', 'a.localhost']) {
      assert.deepEqual(await lookUp(name, never), ['127.0.0.1', '::1']);
      assert.equal(await refusal(new AddressCheck(), `https://${name}/`), 'refused');
    }
  });
});
