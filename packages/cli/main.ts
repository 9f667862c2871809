// The `cubicle` command. Compiled code is kept beside the packages: a second run starts in half the time.

import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { checkout } from './checkout.ts';

enableCompileCache(join(checkout, 'node_modules', '.cache', 'cubicle'));
const { program } = await import('./program.ts');
await program.parseAsync();
