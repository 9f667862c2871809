// What can go wrong between the agent and the desktop, in the words that callers tell apart.

export type Trouble =
  /** No display answers, or it answered nonsense: try again later. */
  | 'lost'
  /** Somebody on the desktop did not answer in time. */
  | 'silent'
  /** The display refused a request. */
  | 'refused'
  | 'too_large'
  /** The caller asked for something that cannot be, such as a key without a name. */
  | 'invalid'
  /** There was no such window to begin with. */
  | 'unknown'
  /** The window went away meanwhile. */
  | 'gone'
  /** Somebody else took it. */
  | 'contention'
  /** It was asked for, and nothing tells that it came to pass. */
  | 'unconfirmed'
  /** The compositor places the window, so nobody else does. */
  | 'tiled';

export class DisplayError extends Error {
  readonly trouble: Trouble;

  constructor(trouble: Trouble, message: string, options?: ErrorOptions) {
    super(message, options);
    this.trouble = trouble;
  }
}
