// A reporter of Node's test runner: the files in which something failed, each on a line of its own.

import type { EventData } from 'node:test';

type Event = { type: string; data: Partial<EventData.TestFail> };

export default async function* failedFiles(events: AsyncIterable<Event>) {
  const told = new Set<string>();
  for await (const { type, data } of events) {
    if (type !== 'test:fail' || data.file === undefined || told.has(data.file)) continue;
    told.add(data.file);
    yield `${data.file}\n`;
  }
}
