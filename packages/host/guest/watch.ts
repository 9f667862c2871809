// A watched tree of a guest: news of it as lines of JSON, each checked to be about that tree alone. A reader
// that takes its time holds the guest back, by the channel's credit.

import {
  decodeMessage,
  isWithin,
  watchAnswer,
  watchNews,
  type WatchNews,
} from '@cubicle/contract/guest/messages.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import { sizes } from '@cubicle/contract/guest/sizes.ts';
import type { Answered, Guest } from './guest.ts';
import { refusedFile, type Result } from './result.ts';

export async function watchTree(
  context: Context,
  guest: Guest,
  tree: string,
): Promise<Result<{ readonly news: AsyncIterable<WatchNews> }>> {
  const asked = { op: 'watch', path: tree } as const;
  const result = await guest.ask(context, asked, watchAnswer, (why) => refusedFile(why, tree));
  return result.ok ? { ok: true, news: newsOf(tree, result) } : result;
}

async function* newsOf(
  tree: string,
  { channel, fault }: Answered<unknown>,
): AsyncGenerator<WatchNews, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  try {
    for (let piece = await channel.receive(); piece; piece = await channel.receive()) {
      if (piece.stream !== 0) fault('news of a tree on the wrong stream');
      const bytes = rest.length === 0 ? piece.bytes : Buffer.concat([rest, piece.bytes]);
      let at = 0;
      for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, at)) {
        yield readNews(tree, bytes.subarray(at, end), fault);
        at = end + 1;
      }
      rest = Buffer.from(bytes.subarray(at));
      if (rest.length > sizes.watchLine) fault('a line of news too long to be any');
    }
  } finally {
    channel.reset(new Error('the tree is let go'));
  }
}

function readNews(tree: string, line: Buffer, fault: (message: string) => never): WatchNews {
  let news: WatchNews;
  try {
    if (line.length > sizes.watchLine) return fault('a line of news too long to be any');
    news = decodeMessage(line, watchNews);
  } catch {
    return fault('news of a tree of the wrong shape');
  }
  return 'path' in news && !isWithin(tree, news.path) ? fault('news of another tree') : news;
}
