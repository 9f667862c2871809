import { writeFile } from 'node:fs/promises';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { openGuest } from './guest.ts';
const guest = await openGuest();
const line = `${'x'.repeat(79)}\n`;
const file = join(guest.folder, 'fifty');
await writeFile(file, line.repeat(625000));
const screen = await guest.attach();
const procs = () => readdirSync('/proc').filter((n) => /^\d+$/.test(n)).flatMap((n) => { try { const c = readFileSync(`/proc/${n}/cmdline`, 'latin1').replaceAll('\0', ' '); const e= readFileSync(`/proc/${n}/environ`, 'latin1'); if (!(c+e).includes(guest.folder) && +n !== process.pid) return []; const s = readFileSync(`/proc/${n}/stat`, 'latin1').split(') ')[1]!.split(' '); const io=readFileSync(`/proc/${n}/io`,'latin1'); return [[n, c.slice(0, 30), 'u', s[11], 's', s[12], /syscr: \d+/.exec(io)![0], /syscw: \d+/.exec(io)![0]]]; } catch { return []; } });
for (let i = 0; i < 2; i++) {
let n = 0; const o = screen.output.bind(screen); (screen as any).output = (b: Buffer) => { n++; return o(b); };
console.log(procs().join('\n'));
const t = performance.now();
const typed = `cat ${file}`;
const seen = screen.shows(screen.count + typed.length + 50_625_000);
screen.type(typed + '\n'); await seen;
console.log(performance.now() - t, 'ms', n, 'frames');
console.log(procs().join('\n'));
await screen.quiet();
}
await guest.close();
