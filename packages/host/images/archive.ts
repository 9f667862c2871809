// Where the image's packages come from: the archive, keys and apt settings of this machine.

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { readSources, type Source } from '../engine/incus/apt-sources.ts';

const run = promisify(execFile);

export interface Archive {
  /** A deb822 file; it stays in the image. */
  readonly sources: string;
  /** Paths of the keys it names, which the image needs too. */
  readonly keys: readonly string[];
  /** For apt while the image is made: proxies and the like. */
  readonly aptSettings: string;
  /** The part of them that stays: an archive whose lists are old stays one for guests. */
  readonly keptSettings: string;
}

/** What of a source still holds for a guest of another release or architecture. */
const keptFields = ['uris', 'suites', 'components', 'signed-by', 'trusted', 'check-valid-until'];

export async function machineArchive(release: string, etc = '/etc/apt'): Promise<Archive> {
  const system = await readFile('/etc/os-release', 'utf8').catch(() => '');
  const codename = /^ID=debian$/m.test(system)
    ? (/^VERSION_CODENAME=(\w+)/m.exec(system)?.[1] ?? release)
    : release;
  const sources = (await readSources(etc))
    .map((source) => forRelease(source, codename, release))
    .filter((source) => source !== undefined);
  if (!sources.some((source) => words(source, 'suites').includes(release))) {
    throw new Error(
      `The base image is Debian ${release}, and no apt source of this machine offers it; add one to ${etc}/sources.list.d.`,
    );
  }
  const stanzas = await Promise.all(sources.map(stanza));
  const settings = await acquireSettings();
  return {
    sources: stanzas.join('\n'),
    keys: [...new Set(sources.flatMap(keyFiles))],
    aptSettings: settings.join(''),
    keptSettings: settings.filter((line) => line.includes('Check-Valid-Until')).join(''),
  };
}

/** An archive serves all of Debian's releases, so one for the machine's own serves the image's. */
function forRelease(source: Source, codename: string, release: string): Source | undefined {
  const wanted = [release, `${release}-updates`, `${release}-security`];
  const suites = words(source, 'suites')
    .map((suite) => suite.replace(new RegExp(`^${codename}(?=$|-)`), release))
    .filter((suite) => wanted.includes(suite));
  return suites.length === 0 ? undefined : new Map(source).set('suites', suites.join(' '));
}

/** A key may also stand in the source itself, over several lines. */
function keyFiles(source: Source): string[] {
  const inline = source.get('signed-by')?.includes('\n') ?? false;
  return inline ? [] : words(source, 'signed-by').filter((word) => word.startsWith('/'));
}

async function stanza(source: Source): Promise<string> {
  const fields = new Map(source).set('uris', (await plainUris(words(source, 'uris'))).join(' '));
  const kept = keptFields.filter((name) => fields.has(name));
  return `Types: deb\n${kept.map((name) => `${titled(name)}: ${fields.get(name)}\n`).join('')}`;
}

/** Debian's cloud images name their mirrors in a file of the machine's, which no guest has. */
async function plainUris(uris: readonly string[]): Promise<string[]> {
  const lists = uris.map(async (uri) => {
    if (!uri.startsWith('mirror+file:')) return [uri];
    const text = await readFile(new URL(uri.slice('mirror+'.length)), 'utf8');
    const lines = text.split('\n').map((line) => line.replace(/[\s#].*/, ''));
    return lines.filter((line) => line !== '');
  });
  return (await Promise.all(lists)).flat();
}

/** Lines of `apt-config dump`, which apt reads again. The machine's own files are not read by mmdebstrap. */
async function acquireSettings(): Promise<string[]> {
  const { stdout } = await run('apt-config', ['dump', '--no-empty', 'Acquire']);
  const wanted = /^Acquire::(Check-Valid-Until|https?::(?!User-Agent)[^ ]+) "/;
  return stdout
    .split('\n')
    .filter((line) => wanted.test(line))
    .map((line) => `${line}\n`);
}

const words = (source: Source, field: string): string[] =>
  (source.get(field) ?? '').split(/\s+/).filter((word) => word !== '');

const titled = (name: string): string =>
  name === 'uris' ? 'URIs' : name.replaceAll(/(^|-)\w/g, (letter) => letter.toUpperCase());
