// `npm run check`: types, lint, format, import direction, unused code, generated files up to date.

import { runTool } from './checkout.ts';
import { root } from './checkout.ts';
import { staleFiles } from './generate.ts';
import { wrongImports } from './imports.ts';

const checks: Record<string, () => boolean | Promise<boolean>> = {
  types: () => runTool('tsc', ['-p', '.']),
  'types of the pages': () => runTool('tsc', ['-p', 'packages/web']),
  'types of the script in pages': () => runTool('tsc', ['-p', 'packages/guest/browser']),
  lint: () => runTool('oxlint', ['--type-aware', '--deny-warnings']),
  format: () => runTool('oxfmt', ['--check', '.']),
  imports: () => none(wrongImports(root)),
  unused: () => runTool('knip', []),
  generated: async () =>
    none((await staleFiles()).map((file) => `${file} is out of date: run \`npm run generate\``)),
};

function none(sentences: readonly string[]): boolean {
  for (const sentence of sentences) console.error(sentence);
  return sentences.length === 0;
}

let good = true;
for (const [name, check] of Object.entries(checks)) {
  const passed = await check();
  console.log(`${passed ? 'ok  ' : 'FAIL'} check ${name}`);
  good &&= passed;
}
process.exitCode = good ? 0 : 1;
