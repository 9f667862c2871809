// RFC 3339 timestamps in UTC, as every answer carries them (Part 2).

import { z } from 'zod';

export const timestamp = z.iso.datetime({ precision: 3 });
