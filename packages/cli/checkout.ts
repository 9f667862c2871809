// The checkout this command belongs to; relative settings such as CUBICLE_DATA start from it.

import { fileURLToPath } from 'node:url';

export const checkout = fileURLToPath(new URL('../..', import.meta.url));
