// Opens the service's database for one command of the operator's, and closes it again.

import { Operator } from '@cubicle/server/app/operator.ts';
import { Database } from '@cubicle/server/db/database.ts';
import { migrate } from '@cubicle/server/db/migrate.ts';
import { readSettings } from '@cubicle/server/settings.ts';
import { openDatabase } from '@cubicle/server/store.ts';
import { checkout } from './checkout.ts';

export async function withOperator<Result>(
  work: (operator: Operator) => Promise<Result>,
): Promise<Result> {
  const settings = readSettings(process.env, checkout);
  // Progress goes to standard error: standard output carries the answer alone.
  const store = await openDatabase(settings, 'command', (line) => console.error(line));
  try {
    await migrate(store.connection);
    const database = new Database(store.connection, 1);
    try {
      return await work(new Operator(database));
    } finally {
      await database.close();
    }
  } finally {
    await store.close();
  }
}
