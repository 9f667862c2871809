// `cubicle start`: runs the service until it is told to stop.

import { relative } from 'node:path';
import { firstKeyPath } from '@cubicle/server/first-key.ts';
import { type RunningServer, startServer } from '@cubicle/server/main.ts';
import { readSettings, type Settings } from '@cubicle/server/settings.ts';
import { checkout } from './checkout.ts';
import { type HostNews, type WatchedHost, watchHost } from './host.ts';
import { sentence } from './sentence.ts';

const say = (line: string) => process.stdout.write(`${line}\n`);

export async function start(): Promise<void> {
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
    if (host?.served === true) say('Computers that run go on running; the next start finds them.');
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
    // Both start at once: the host takes seconds, and minutes when it makes the image.
    const settled = Promise.withResolvers<boolean>();
    if (settings.engine === 'none') settled.resolve(false);
    else host = watchHost((news) => hear(starting, news, settled.resolve));
    const server = await starting;
    const computers = await settled.promise;
    if (!told) welcome(settings, server, computers);
  } catch (error) {
    console.error(sentence(error));
    await host?.stop();
    process.exit(1);
  }
}

/** `settled` once the host is registered, or has said why it cannot be: then the control plane runs alone. */
function hear(
  starting: Promise<RunningServer> | undefined,
  news: HostNews,
  settled: (computers: boolean) => void,
): void {
  if ('say' in news) say(news.say);
  else if ('failed' in news) {
    say(`Computers cannot run here: ${news.failed}`);
    settled(false);
  } else {
    // A server that does not start is told of by whoever waits for it.
    void starting
      ?.then((server) => server.registerHost(news.ready))
      .then(() => settled(true))
      .catch(() => {});
  }
}

function welcome(settings: Settings, server: RunningServer, computers: boolean): void {
  const { baseUrl, firstAccount } = server;
  const keyFile = relative(process.cwd(), firstKeyPath(settings.dataDir));
  const lines = [
    '',
    `Cubicle is ready at ${baseUrl}`,
    `Reference: ${new URL('/docs', baseUrl).href}`,
  ];
  if (firstAccount !== undefined) {
    const { raw } = firstAccount.key;
    const what = computers ? `/computers -d '{"size": "small"}'` : '/whoami';
    lines.push(
      '',
      `Your first API key, shown this once (kept in ${keyFile}):`,
      `  ${raw}`,
      computers ? 'Your first computer:' : 'Try it:',
      `  curl -H "Authorization: Bearer ${raw}" ${baseUrl}${what}`,
    );
  } else if (server.firstKeyKept) {
    lines.push(`The first API key is in ${keyFile}.`);
  }
  // At once: a program that waits for the address finds the key beside it.
  say([...lines, ''].join('\n'));
}
