// What the operator's commands are made of: groups, verbs, and answers in the shape asked for.

import { Command } from 'commander';
import type { Operator } from '@cubicle/server/app/operator.ts';
import { sentence } from './sentence.ts';
import { printAnswer } from './table.ts';

export function group(name: string): Command {
  return new Command(name).configureOutput({
    // A wrong use is told in the shape that was asked for.
    outputError: (text, write) =>
      write(
        process.argv.includes('--json')
          ? `${JSON.stringify({ error: text.replace(/^error: /, '').trim() })}\n`
          : text,
      ),
    writeErr: (text) =>
      process.argv.includes('--json') ? process.stdout.write(text) : process.stderr.write(text),
  });
}

export function verb(name: string, description: string): Command {
  return group(name).description(description).option('--json', 'print exactly one JSON object');
}

/** Runs a verb against the service's database and prints what it answers in the shape asked for. */
export function answering<Options extends object, Arguments extends unknown[]>(
  action: (operator: Operator, options: Options, ...given: Arguments) => Promise<object>,
): (...given: [...Arguments, Options, Command]) => Promise<void> {
  return async (...given) => {
    const options = given.at(-2) as Options & { json?: true };
    const rest = given.slice(0, -2) as Arguments;
    try {
      const { withOperator } = await import('./operator.ts');
      const answer = await withOperator((operator) => action(operator, options, ...rest));
      if (options.json) console.log(JSON.stringify(answer));
      else printAnswer(answer);
    } catch (error) {
      const message = sentence(error);
      if (options.json) console.log(JSON.stringify({ error: message }));
      else console.error(message);
      process.exitCode = 1;
    }
  };
}
