// `node scripts/bundle-agent.ts FILE` writes the agent as the host puts it into guests.

import { writeFileSync } from 'node:fs';
import { bundleAgent } from '../packages/guest/bundle.ts';

const file = process.argv[2];
if (file === undefined) throw new Error('Name the file to write.');
writeFileSync(file, await bundleAgent());
