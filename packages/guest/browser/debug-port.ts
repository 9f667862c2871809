// The port at which a browser lets its pages be read: one of its own flags, which /etc/chromium.d gives it.

import { closeSync, openSync, readSync } from 'node:fs';

const flag = /^--remote-debugging-port=([1-9]\d{0,4})$/;
/** Flags come before addresses, which may be long. */
const mostBytes = 65_536;

/** Nothing when there is no such process, or it has no such flag. */
export function debugPort(pid: number): number | undefined {
  const ports = commandLine(pid).flatMap((argument) => flag.exec(argument)?.[1] ?? []);
  // Of one flag given twice Chromium takes the last.
  const port = Number(ports.at(-1) ?? 0);
  return port > 0 && port <= 65_535 ? port : undefined;
}

/** Chromium writes its own anew, with blanks between. */
function commandLine(pid: number): string[] {
  let fd: number | undefined;
  try {
    fd = openSync(`/proc/${pid}/cmdline`, 'r');
    const room = Buffer.alloc(mostBytes);
    return room.toString('latin1', 0, readSync(fd, room, 0, mostBytes, 0)).split(/[\0 ]/);
  } catch {
    return [];
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
