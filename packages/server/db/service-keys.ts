// Secrets that all processes of the service share, made once.

import { randomBytes } from 'node:crypto';
import { only, type Runner, sql } from './database.ts';

// The update that changes nothing makes the secret that was there first come back.
const ensure = sql(`
  INSERT INTO service_keys AS k (name, secret) VALUES ($1, $2)
  ON CONFLICT (name) DO UPDATE SET secret = k.secret RETURNING secret`);

export async function serviceKey(db: Runner, name: string): Promise<Buffer> {
  return only(await db.run<{ secret: Buffer }>(ensure, [name, randomBytes(32)])).secret;
}
