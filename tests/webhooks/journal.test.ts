import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Journal, type Told } from '../../packages/host/events/journal.ts';

const never = new AbortController().signal;

suite('a host’s journal', () => {
  const gaps = {
    lost: (computer: string, cursor: string) => gap(computer, cursor),
    everybody: (which: string) => [gap(which, '')],
  };
  const gap = (computer: string, cursor: string) => ({
    type: 'gap',
    computer,
    cursor,
    at: new Date(0).toISOString(),
    body: '',
  });
  const told = (n: number, further: Partial<Told> = {}): Told => ({
    source: 'daemon',
    type: 'computer.idle',
    computer: 'vm-1',
    cursor: `e:${n}`,
    at: new Date(n),
    text: `{"n":${n}}`,
    ...further,
  });

  test('pages follow each other without a hole or a repeat', () => {
    const journal = new Journal();
    for (let n = 0; n < 25; n += 1) {
      journal.note(told(n, { source: n % 3 === 0 ? 'guest' : 'daemon' }));
    }
    journal.note(told(25, { type: 'file.changed', source: 'guest' }));
    let cursor: string | undefined;
    const bodies: string[] = [];
    for (let page = journal.page(cursor, 10, gaps); page.events.length > 0;) {
      bodies.push(...page.events.map(({ body }) => body));
      ({ cursor } = page);
      page = journal.page(cursor, 10, gaps);
    }
    assert.deepEqual(
      bodies,
      Array.from({ length: 25 }, (_, n) => `{"n":${n}}`),
    );
  });

  test('what made way unread is a gap of its computer alone, and what is held follows it', () => {
    const journal = new Journal();
    journal.note(told(0, { computer: 'vm-quiet' }));
    const { cursor } = journal.page(undefined, 10, gaps);
    journal.note(told(1, { computer: 'vm-seen' }));
    for (let n = 2; n < 70_000; n += 1)
      journal.note(told(n, { source: 'guest', computer: 'vm-loud' }));
    const page = journal.page(cursor, 3, gaps);
    const [first, ...rest] = page.events;
    assert.deepEqual([first?.type, first?.computer], ['gap', 'vm-loud']);
    assert.equal(rest[0]?.computer, 'vm-seen', 'no guest pushes out what the host saw');
    const held = rest[1]?.body;
    assert.equal(first?.cursor, `e:${70_000 - 65_536 - 1}`);
    assert.equal(held, `{"n":${70_000 - 65_536}}`);
    assert.ok(journal.page(page.cursor, 3, gaps).events.every(({ type }) => type !== 'gap'));
  });

  test('a reader of an earlier life is told of everybody who was there before', () => {
    const journal = new Journal();
    journal.note(told(0));
    const page = journal.page('ffffffffffffffff:3', 10, gaps);
    assert.deepEqual(
      page.events.map(({ type, computer }) => [type, computer]),
      [
        ['gap', 'found'],
        ['computer.idle', 'vm-1'],
      ],
    );
    const next = journal.page(page.cursor, 10, gaps);
    assert.deepEqual(next, { cursor: page.cursor, events: [] });
  });

  test('who waits hears of news at once, and of the end', async () => {
    const journal = new Journal();
    const waiting = journal.news(3_600_000, never);
    journal.note(told(0));
    await waiting;
    const gone = new AbortController();
    const left = journal.news(3_600_000, gone.signal);
    gone.abort();
    await left;
    const ending = journal.news(3_600_000, never);
    journal.end();
    await ending;
    await assert.rejects(journal.news(3_600_000, never));
  });
});
