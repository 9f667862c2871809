/** A process of its own that opens the embedded PostgreSQL and holds it until its input ends. */
import { openEmbeddedPostgres } from '../../packages/server/postgres/embedded.ts';

const [dataDir = '', role, waitMs] = process.argv.slice(2);
try {
  const database = await openEmbeddedPostgres({
    dataDir,
    role: role === 'command' ? 'command' : 'service',
    say: () => {},
    waitMs: Number(waitMs),
  });
  console.log(JSON.stringify({ url: database.url }));
  process.stdin.resume();
  process.stdin.once('end', () => void database.stop());
} catch (error) {
  console.log(JSON.stringify({ error: error instanceof Error ? error.message : String(error) }));
}
