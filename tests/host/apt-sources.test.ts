/** Proves that a further suite is derived from whatever form the machine's apt sources have. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { offers, readSources, sisterSuite } from '../../packages/host/engine/incus/apt-sources.ts';

async function etc(t: TestContext, files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'cubicle-apt-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, 'sources.list.d'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

const derive = async (folder: string): Promise<string | undefined> => {
  const source = (await readSources(folder)).find((found) => offers(found, 'bookworm'));
  return source && sisterSuite(source, 'bookworm-backports');
};

test('stanzas keep their mirror, their key and their options', async (t) => {
  const folder = await etc(t, {
    'sources.list.d/debian.sources': `Types: deb deb-src
# a comment
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc

Types: deb
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main
`,
    'sources.list.d/other.sources.disabled': 'Types: deb\nURIs: http://x/\nSuites: bookworm\n',
  });
  assert.equal(
    await derive(folder),
    `types: deb
uris: http://mirror.example/debian
suites: bookworm-backports
components: main
signed-by: 
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
`,
  );
});

test('one-line sources become stanzas', async (t) => {
  const folder = await etc(t, {
    'sources.list': `# deb http://commented.example/debian bookworm main
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64,arm64 signed-by=/usr/share/keyrings/a.gpg] https://mirror.example/debian bookworm main contrib # mine
`,
  });
  assert.equal(
    await derive(folder),
    `types: deb
uris: https://mirror.example/debian
suites: bookworm-backports
components: main
architectures: amd64 arm64
signed-by: /usr/share/keyrings/a.gpg
`,
  );
});

test('a source that is switched off offers nothing', async (t) => {
  const folder = await etc(t, {
    'sources.list.d/debian.sources': `Enabled: no
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-backports
Components: main
`,
  });
  assert.deepEqual(await readSources(folder), []);
  assert.equal(await derive(folder), undefined);
});
