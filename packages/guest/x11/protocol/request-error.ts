// What the X server refuses.

import { DisplayError } from '../../desktop/trouble.ts';

/** An error packet of the X server's. `code` as in the core protocol: 3 is a window that is not there. */
export class RequestError extends DisplayError {
  readonly code: number;

  constructor(code: number, opcode: number) {
    super('refused', `the display refused request ${opcode} with error ${code}`);
    this.code = code;
  }
}

const badWindow = 3;
const badDrawable = 9;

export function isNoWindow(error: unknown): boolean {
  return error instanceof RequestError && (error.code === badWindow || error.code === badDrawable);
}
