// What browsers are given: the pages' scripts and styles, each in one file, made once and kept.

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

export interface DesktopPage {
  /** Names its script and style with their digest, so that a browser may keep those for ever. */
  readonly html: string;
  readonly script: string;
  readonly style: string;
  readonly mark: string;
}

const at = (name: string) => fileURLToPath(new URL(`desktop/${name}`, import.meta.url));
let made: Promise<DesktopPage> | undefined;

/** The page of a live desktop, for `/embed/{id}` and `/desktop/{id}` alike. */
export function desktopPage(): Promise<DesktopPage> {
  return (made ??= make().catch((error: unknown) => {
    made = undefined;
    throw error;
  }));
}

async function make(): Promise<DesktopPage> {
  const { outputFiles } = await build({
    entryPoints: { desktop: at('main.ts'), style: at('style.css') },
    outdir: 'assets',
    write: false,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2024',
    // noVNC asks the browser for its decoders before it begins.
    supported: { 'top-level-await': true },
    legalComments: 'none',
    logLevel: 'warning',
  });
  const text = (end: string) => outputFiles.find(({ path }) => path.endsWith(end))?.text ?? '';
  const [script, style] = [text('desktop.js'), text('style.css')];
  const digest = createHash('sha256').update(script).update(style).digest('hex').slice(0, 16);
  const html = (await readFile(at('page.html'), 'utf8')).replaceAll('{digest}', digest);
  return { html, script, style, mark: await readFile(at('mark.svg'), 'utf8') };
}
