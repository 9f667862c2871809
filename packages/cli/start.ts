// `cubicle start`: runs the service until it is told to stop.

import { relative } from 'node:path';
import { Command } from 'commander';
import { firstKeyPath } from '@cubicle/server/first-key.ts';
import { type RunningServer, startServer } from '@cubicle/server/main.ts';
import { readSettings, type Settings } from '@cubicle/server/settings.ts';
import { checkout } from './checkout.ts';
import { type HostNews, type WatchedHost, watchHost } from './host.ts';
import { sentence } from './sentence.ts';

const say = (line: string) => process.stdout.write(`${line}\n`);

export function startCommand(): Command {
  return new Command('start').description('Run the service.').action(start);
}

async function start(): Promise<void> {
  // Whoever read our output may be gone; that is no reason to end.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  let starting: Promise<RunningServer> | undefined;
  let host: WatchedHost | undefined;
  let told = false;
  const stop = async () => {
    if (told) return;
    told = true;
    say('Stopping: finishing what is under way.');
    // A start that is half way comes to its end first: cut off, it would leave a database server behind.
    const server = await starting?.catch(() => undefined);
    await server?.stop();
    await host?.stop();
    process.exit();
  };
  process.on('SIGTERM', () => void stop());
  process.on('SIGINT', () => void stop());
  try {
    const settings = readSettings(process.env, checkout);
    starting = startServer(settings, {
      say,
      onFailure: (error) => {
        console.error(error.message);
        process.exitCode = 1;
        void stop();
      },
    });
    const server = await starting;
    if (settings.engine !== 'none' && !told) {
      const news = Promise.withResolvers<void>();
      host = watchHost((heard) => hear(server, heard, news.resolve));
      await news.promise;
    }
    if (!told) welcome(settings, server);
  } catch (error) {
    console.error(sentence(error));
    process.exit(1);
  }
}

/** `settled` once the host is ready, or has said why it cannot be: then the control plane runs alone. */
function hear(server: RunningServer, news: HostNews, settled: () => void): void {
  if ('say' in news) say(news.say);
  else if ('ready' in news) void server.registerHost(news.ready).then(settled);
  else {
    say(`Computers cannot run here: ${news.failed}`);
    settled();
  }
}

function welcome(settings: Settings, server: RunningServer): void {
  const { baseUrl, firstAccount } = server;
  const keyFile = relative(process.cwd(), firstKeyPath(settings.dataDir));
  say('');
  say(`Cubicle is ready at ${baseUrl}`);
  say(`Reference: ${new URL('/docs', baseUrl).href}`);
  if (firstAccount !== undefined) {
    const { raw } = firstAccount.key;
    say('');
    say(`Your first API key, shown this once (kept in ${keyFile}):`);
    say(`  ${raw}`);
    say('Try it:');
    say(`  curl -H "Authorization: Bearer ${raw}" ${baseUrl}/whoami`);
  } else if (server.firstKeyKept) {
    say(`The first API key is in ${keyFile}.`);
  }
  say('');
}
