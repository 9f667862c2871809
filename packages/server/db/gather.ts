// Many equal reads as few statements: what is asked while one statement is under way goes out
// together in the next. Nothing is kept, so every answer is read after it was asked for.

/** A batch stays small enough that its first asker does not wait for its last. */
const mostAtOnce = 200;

interface Waiting<Ask, Answer> {
  readonly ask: Ask;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** `read` answers in the order of its asks. */
export function gathered<Ask, Answer>(
  read: (asks: Ask[]) => Promise<Answer[]>,
): (ask: Ask) => Promise<Answer> {
  let waiting: Waiting<Ask, Answer>[] = [];
  let underWay = false;

  async function go(): Promise<void> {
    underWay = true;
    while (waiting.length > 0) {
      const batch = waiting.splice(0, mostAtOnce);
      try {
        const answers = await read(batch.map(({ ask }) => ask));
        batch.forEach(({ resolve }, i) => resolve(answers[i] as Answer));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    underWay = false;
  }

  return (ask) =>
    new Promise((resolve, reject) => {
      waiting.push({ ask, resolve, reject });
      if (!underWay) void go();
    });
}
