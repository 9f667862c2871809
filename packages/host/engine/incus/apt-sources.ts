/** Reads the machine's own apt sources and derives a further suite of the same archive from them. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** One deb822 stanza, its field names in lower case. */
export type Source = ReadonlyMap<string, string>;

/** The fields that deb822 spells differently from the options of a one-line source. */
const longNames: Record<string, string> = {
  arch: 'architectures',
  lang: 'languages',
  target: 'targets',
};

/** Every source of packages that apt would use, in the order of its files. */
export async function readSources(etc = '/etc/apt'): Promise<Source[]> {
  const parts = await readdir(join(etc, 'sources.list.d')).catch((): string[] => []);
  const files = ['sources.list', ...parts.toSorted().map((name) => `sources.list.d/${name}`)];
  const sources: Source[] = [];
  for (const file of files) {
    const parse = file.endsWith('.sources') ? parseStanzas : parseLines;
    // apt reads these two endings only: other names are files somebody put aside.
    if (!/\.(list|sources)$/.test(file)) continue;
    sources.push(...parse(await readFile(join(etc, file), 'utf8').catch(() => '')));
  }
  return sources.filter(
    (source) =>
      words(source, 'types').includes('deb') &&
      !/^(no|false|0)$/i.test(source.get('enabled') ?? ''),
  );
}

export const offers = (source: Source, suite: string): boolean =>
  words(source, 'suites').includes(suite);

/** The text of a sources file for another suite of the archive that a source names. */
export function sisterSuite(source: Source, suite: string): string {
  const fields = new Map(source);
  fields.set('types', 'deb').set('suites', suite).set('components', 'main');
  return [...fields].map(([name, value]) => `${name}: ${value}\n`).join('');
}

const words = (source: Source, field: string): string[] =>
  (source.get(field) ?? '').split(/\s+/).filter((word) => word !== '');

/** Continuation lines stay as they are: a key may stand in the file itself. */
function parseStanzas(text: string): Source[] {
  const lines = text.split('\n').filter((line) => !line.startsWith('#'));
  return lines
    .join('\n')
    .split(/\n[ \t]*\n/)
    .map((stanza) => {
      const fields = stanza.matchAll(/^([\w-]+):[ \t]*(.*(?:\n[ \t].*)*)/gm);
      return new Map([...fields].map(([, name = '', value = '']) => [name.toLowerCase(), value]));
    });
}

const oneLine = /^(deb)\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s*(.*)$/;

function parseLines(text: string): Source[] {
  const lines = text.split('\n').map((line) => oneLine.exec(line.replace(/#.*/, '').trim()));
  return lines
    .filter((found) => found !== null)
    .map(([, types = '', options = '', uris = '', suites = '', components = '']) => {
      const given = [...options.matchAll(/([\w-]+)=(\S+)/g)].map(
        ([, name = '', value = '']) =>
          [
            longNames[name.toLowerCase()] ?? name.toLowerCase(),
            value.replaceAll(',', ' '),
          ] as const,
      );
      return new Map([
        ['types', types],
        ['uris', uris],
        ['suites', suites],
        ['components', components],
        ...given,
      ]);
    });
}
