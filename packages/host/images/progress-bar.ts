// Shows a person how far a build is: a bar on a terminal, else a line for every tenth.

import type { Progress } from './stages.ts';

const width = 30;

export function progressBar(stream: NodeJS.WriteStream): (progress: Progress) => void {
  // What is shown already: progress comes far more often than it can be seen.
  let shown = '';
  return ({ stage, done }) => {
    const percent = Math.floor(done * 100);
    const step = `${stage} ${stream.isTTY ? percent : Math.floor(percent / 10)}`;
    if (step === shown) return;
    shown = step;
    if (!stream.isTTY) {
      stream.write(`${stage}, ${percent} %\n`);
      return;
    }
    const bar = '█'.repeat(Math.round(done * width)).padEnd(width, '░');
    const end = percent === 100 ? '\n' : '';
    stream.write(`\r${bar} ${`${percent}`.padStart(3)} %  ${stage}\u001B[K${end}`);
  };
}
