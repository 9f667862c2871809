// The log: JSON lines on standard error. Nothing in it carries a credential: neither headers nor
// query strings nor bodies are ever handed to it.

import { pino } from 'pino';

export const logLevels = ['silent', 'error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof logLevels)[number];

export type Log = Pick<pino.Logger, 'debug' | 'info' | 'warn' | 'error'>;

export function makeLog(level: LogLevel): Log {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 2, sync: true }),
  );
}
