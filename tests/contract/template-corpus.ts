// Template documents, good and bad, with the problems each must be told of. Most are one good document with
// one thing changed, so that the table stays short and every row says what it is about.

const secret = 'csec-0123456789abcdef';

/** As much as a document can say. */
export function wholeDocument(): Json {
  return {
    apiVersion: 'cubicle/v1',
    kind: 'Template',
    metadata: { namespace: 'acc-0123456789ab', name: 'research', version: '1.2.3' },
    spec: {
      label: 'Research desktop',
      icon: 'flask',
      os: 'linux',
      desktop: 'x11',
      family: 'golden-acc-0123456789ab-research',
      from: 'system/base@1.0.0',
      cpu: 4,
      ram_mb: 4096,
      disk_gb: 20,
      build: [
        { apt: ['git', 'ripgrep=14.1.0-1', 'g++', 'libc6:i386', 'foo/bookworm-backports'] },
        { run: 'set -u\necho "hello"\n' },
        { file: { path: '/etc/motd', content: 'hello\n', mode: '0644', owner: 'root' } },
        { file: { path: '/usr/bin/x', content_b64: 'AAEC', mode: '755', owner: 'user:user' } },
        { mkdir: { path: '/srv/data', mode: '0750', owner: 'user' } },
        { env: { DEBIAN_FRONTEND: 'noninteractive' } },
      ],
      env: { LANG: 'C.UTF-8', _EMPTY: '' },
      secrets: [{ id: secret, as: 'TOKEN' }],
      browser_proxy: {
        server: 'http://proxy.example.com:3128',
        bypass: ['*.example.com', '10.0.0.0/8', '<local>'],
        credentials_secret_id: secret,
      },
    },
  };
}

/** As little as it must. */
export function leastDocument(): Json {
  return {
    apiVersion: 'cubicle/v1',
    kind: 'Template',
    metadata: { namespace: 'acc-0123456789ab', name: 'least', version: '0.0.0' },
    spec: { os: 'linux' },
  };
}

// eslint-disable-next-line typescript/no-explicit-any -- documents of every shape, wrong ones too
export type Json = any;
export type Change = readonly [path: string, value: unknown];

/** `gone` takes the field away. */
export const gone = Symbol('gone');

export function changed(document: Json, [path, value]: Change): Json {
  const parts = path.split('.');
  const last = parts.pop() as string;
  let place = document;
  for (const part of parts) place = place[part];
  if (value === gone) delete place[last];
  else place[last] = value;
  return document;
}

const long = (count: number) => 'x'.repeat(count);

/** What may be changed in the whole document, and it stays good. */
export const goodChanges: readonly Change[] = [
  ...['icon', 'label', 'desktop', 'family', 'cpu', 'ram_mb', 'disk_gb'].map((field): Change => [
    `spec.${field}`,
    gone,
  ]),
  ...['build', 'env', 'secrets', 'browser_proxy'].map((field): Change => [`spec.${field}`, gone]),
  ...['0.0.0', '999999999.999999999.999999999', '10.20.30'].map((version): Change => [
    'metadata.version',
    version,
  ]),
  ...['a', '0', long(63), 'python3.12', 'a_b-c', '7zip'].map((name): Change => [
    'metadata.name',
    name,
  ]),
  ['metadata.namespace', 'system'],
  ['spec.from', 'system/base'],
  ['spec.label', 'Ünïcode ✓ 🧊'],
  ['spec.label', long(80)],
  ['spec.desktop', 'wayland'],
  ['spec.cpu', 1],
  ['spec.cpu', 256],
  ['spec.ram_mb', 512],
  ['spec.disk_gb', 65_536],
  ['spec.build', []],
  ['spec.build', Array.from({ length: 200 }, (_, n) => ({ run: `echo ${n}` }))],
  ['spec.build.0.apt', Array.from({ length: 200 }, (_, n) => `package-${n}`)],
  ['spec.build.1.run', long(65_536)],
  ['spec.build.1.run', '&anchor *alias !tag %directive\n--- | > # "\' : - ?'],
  ['spec.build.1.run', '🧊\u2028\u0085\u00a0\ttab\r\n'],
  ['spec.build.2.file.content', ''],
  ['spec.build.2.file.path', '/a/..b/...c/ d'],
  ['spec.build.3.file.content_b64', ''],
  ['spec.build.5.env', {}],
  ['spec.env', {}],
  ['spec.env', { constructor: 'x', toString: 'y', hasOwnProperty: 'z' }],
  ['spec.env', { [`A${long(63)}`]: long(4096) }],
  ['spec.secrets', []],
  // The number of secrets is a rule of builds (Part 4, Builds 4).
  ['spec.secrets', Array.from({ length: 40 }, (_, n) => ({ id: secret, as: `S${n}` }))],
  ['spec.browser_proxy', { server: 'socks5://[2001:db8::1]:1080' }],
  ['spec.browser_proxy.bypass', []],
];

const name =
  'must be 1 to 63 lower-case letters, digits, `.`, `_` and `-`, with a letter or digit at both ends';
const version = 'must be MAJOR.MINOR.PATCH, numbers of at most 9 digits without leading zeros';
const quoted = 'must be a string; put it in quotes';
const path = 'must be an absolute path without `.`, `..`, empty parts or a slash at the end';
const oneLine = 'must be one line without control characters, and no space at either end';
const kinds = 'must have exactly one of apt, run, file, mkdir, env';
const contents = 'must have exactly one of content, content_b64';
const envName =
  'is no name for it: it must be a letter or `_`, then up to 63 letters, digits and `_`';
const unknown = 'is not a field that templates have here';
const parent = 'because there is something to build';
const mode = 'must be three or four octal digits in quotes, like "0644"';
const packages = 'must be a Debian package: `name`, `name=version` or `name/release`';
const proxy = 'must be http, https, socks4 or socks5, `://`, a host and a port';

/** One change of the whole document and the one problem it makes, at the path of the change or at another. */
type Bad = readonly [path: string, value: unknown, problem: string, at?: string];

const wrongTypes = (at: string, noun: string, values: readonly unknown[]): Bad[] =>
  values.map((value) => {
    const bare = typeof value === 'number' || typeof value === 'boolean';
    return [at, value, noun === 'a string' && bare ? quoted : `must be ${noun}`];
  });

export const badChanges: readonly Bad[] = [
  ...['apiVersion', 'kind', 'metadata', 'spec'].map((at): Bad => [at, gone, 'is required']),
  ...['namespace', 'name', 'version'].map((at): Bad => [`metadata.${at}`, gone, 'is required']),
  ['spec.os', gone, 'is required'],
  ['spec.from', gone, `is required ${parent}`],
  ['apiVersion', 'cubicle/v2', 'must be `cubicle/v1`'],
  ['apiVersion', 1, 'must be `cubicle/v1`'],
  ['kind', 'template', 'must be `Template`'],
  ['kind', null, 'must be `Template`'],
  ['spec.os', 'windows', 'must be `linux`'],
  ['spec.os', true, 'must be `linux`'],
  ['spec.desktop', 'X11', 'must be one of `x11`, `wayland`'],
  ...wrongTypes('metadata', 'a map', ['x', 7, null, true, []]),
  ...wrongTypes('spec.env', 'a map', ['x', 7, null, []]),
  ...wrongTypes('spec.build', 'a list', ['x', 7, null, {}]),
  ...wrongTypes('spec.secrets', 'a list', ['x', {}]),
  ...wrongTypes('spec.browser_proxy', 'a map', ['x', null, []]),
  ...wrongTypes('spec.build.0.apt', 'a list', ['git', {}, null]),
  ...wrongTypes('spec.build.2.file', 'a map', ['x', 7, null]),
  ...wrongTypes('spec.build.4.mkdir', 'a map', ['/srv']),
  ...wrongTypes('spec.build.0', 'a map', ['run', 7, null, []]),
  ...[
    'metadata.name',
    'metadata.version',
    'spec.label',
    'spec.icon',
    'spec.family',
    'spec.from',
    'spec.build.0.apt.0',
    'spec.build.1.run',
    'spec.build.2.file.content',
    'spec.build.2.file.mode',
    'spec.build.4.mkdir.path',
    'spec.build.5.env.DEBIAN_FRONTEND',
    'spec.env.LANG',
    'spec.secrets.0.id',
    'spec.browser_proxy.server',
  ].flatMap((at) => wrongTypes(at, 'a string', [1.5, false, null, {}, ['x']])),
  ...['metadata.namespace', 'metadata.name', 'spec.family'].flatMap((at) =>
    ['', 'A', '-a', 'a-', 'a b', 'a/b', 'a@b', long(64), 'é', '.', '..'].map((value): Bad => [
      at,
      value,
      name,
    ]),
  ),
  ...['', '1', '1.0', '1.0.0.0', '01.0.0', '1.0.0-rc', 'v1.0.0', '1.0.1000000000', ' 1.0.0'].map(
    (value): Bad => ['metadata.version', value, version],
  ),
  ['spec.label', '', 'must have at least 1 characters'],
  ['spec.label', long(81), 'must have at most 80 characters'],
  ['spec.icon', long(65), 'must have at most 64 characters'],
  ...[' a', 'a ', 'a\nb', 'a\u0007', 'a\u2028b'].map((value): Bad => [
    'spec.label',
    value,
    oneLine,
  ]),
  ...wrongTypes('spec.cpu', 'a number', ['2', null, {}]),
  ['spec.cpu', 2.5, 'must be an integer'],
  ['spec.cpu', 0, 'must be at least 1'],
  ['spec.cpu', -1, 'must be at least 1'],
  ['spec.cpu', 257, 'must be at most 256'],
  ['spec.ram_mb', 511, 'must be at least 512'],
  ['spec.ram_mb', 1e300, 'must be at most 1048576'],
  ['spec.disk_gb', 65_537, 'must be at most 65536'],
  ['spec.disk_gb', -(2 ** 60), 'must be at least 1'],
  ...['base', '/base', 'a/b/c', 'system/base@1', 'system/base@', 'System/base'].map(
    (value): Bad => ['spec.from', value, 'must be namespace/name or namespace/name@version'],
  ),
  ['spec.from', 'acc-0123456789ab/other@1.0.0', `must name a system template, ${parent}`],
  ['spec.build.0', {}, kinds],
  ['spec.build.0', { apt: ['git'], run: 'x' }, kinds],
  ['spec.build.0.apt', [], 'must have at least 1 entries'],
  ['spec.build.0.apt', Array.from({ length: 201 }, () => 'git'), 'must have at most 200 entries'],
  ...['-y', '', 'Git', 'a', 'git;ls', 'git ls', '$(x)', 'git=', '../x', '--option'].map(
    (value): Bad => ['spec.build.0.apt.1', value, packages],
  ),
  [
    'spec.build',
    Array.from({ length: 201 }, () => ({ run: 'x' })),
    'must have at most 200 entries',
  ],
  ['spec.build.1.run', '', 'must have at least 1 characters'],
  ['spec.build.1.run', long(65_537), 'must have at most 65536 characters'],
  ['spec.build.1.run', 'a\0b', 'must have no NUL'],
  ['spec.build.1.run', 'a\ud800', 'must be well-formed Unicode'],
  ...['', '/', 'a', './a', '/a/', '/a//b', '/a/../b', '/..', '/./a', '~/x'].map((value): Bad => [
    'spec.build.2.file.path',
    value,
    path,
  ]),
  ['spec.build.2.file.path', `/${long(4096)}`, 'must have at most 4096 characters'],
  ...['', '644x', '0888', '06444', 'rw-r--r--'].map((value): Bad => [
    'spec.build.2.file.mode',
    value,
    mode,
  ]),
  ...['Root', 'a b', ':x', 'a:', '0'].map((value): Bad => [
    'spec.build.2.file.owner',
    value,
    'must be the name of a user, or `user:group`',
  ]),
  ['spec.build.2.file.content', gone, contents, 'spec.build.2.file'],
  ['spec.build.2.file.content_b64', 'AA==', contents, 'spec.build.2.file'],
  ['spec.build.2.file.path', gone, 'is required'],
  ...['A', 'AAA', 'AA=', '====', 'AA==\n', 'A A='].map((value): Bad => [
    'spec.build.3.file.content_b64',
    value,
    'must be base64 with padding and without line ends',
  ]),
  ...['1A', '', 'A-B', 'é', long(65), 'A.B'].flatMap((key): Bad[] => [
    ['spec.env', { [key]: 'x' }, envName, `spec.env.${shown(key)}`],
  ]),
  ['spec.env', { A: long(4097) }, 'must have at most 4096 characters', 'spec.env.A'],
  ['spec.env', { A: 'a\0' }, 'must have no NUL', 'spec.env.A'],
  ['spec.secrets.0.id', gone, 'is required'],
  ['spec.secrets.0.as', gone, 'is required'],
  ...['x', 'csec-0', 'CSEC-0123456789abcdef', `${secret}0`].map((value): Bad => [
    'spec.secrets.0.id',
    value,
    'must be the id of a secret, `csec-` and 16 hex digits',
  ]),
  ['spec.secrets.0.as', '1', 'must be a letter or `_`, then up to 63 letters, digits and `_`'],
  [
    'spec.secrets',
    [
      { id: secret, as: 'A' },
      { id: secret, as: 'A' },
    ],
    'is the name of an earlier secret as well',
    'spec.secrets.1.as',
  ],
  ...['', 'http://a', 'ftp://a:1', 'http://u:p@a:1', 'a:1', 'http://a:1/x', 'http://a b:1'].map(
    (value): Bad => ['spec.browser_proxy.server', value, proxy],
  ),
  ...['colour', 'value', 'constructor', 'toString', 'a.b', '', 'é'].flatMap((key): Bad[] => [
    ['spec', { ...wholeDocument().spec, [key]: 1 }, unknown, `spec.${shown(key)}`],
  ]),
  ['extra', 1, unknown],
  ['metadata.labels', {}, unknown],
  ['spec.build.0.shell', 'x', unknown],
  ['spec.build.2.file.url', 'x', unknown],
  ['spec.secrets.0.value', 'x', unknown],
  ['spec.browser_proxy.password', 'x', unknown],
];

/** A key as a problem names it. */
function shown(key: string): string {
  if (/^[\w-]{1,64}$/.test(key)) return key;
  return JSON.stringify(key.length <= 64 ? key : `${key.slice(0, 64)}…`);
}
