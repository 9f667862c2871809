/** Runs a program of the machine and returns what it wrote; what it complains of is in the error. */
import { execFile } from 'node:child_process';
import { programPath } from './programs.ts';

const longestMs = 60_000;

export function run(file: string, args: readonly string[], input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      file,
      args,
      {
        timeout: longestMs,
        maxBuffer: 16 * 1024 * 1024,
        env: { PATH: programPath.join(':'), LC_ALL: 'C.UTF-8' },
      },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new Error(`${file} ${args.join(' ')}: ${stderr.trim() || error.message}`));
      },
    );
    // A program that has ended without reading closes the pipe; its exit code tells the rest.
    child.stdin?.on('error', () => {}).end(input);
  });
}
