// The thread in which large documents are read, so that no other request waits for them.

import { parentPort } from 'node:worker_threads';
import { readDocument } from './read.ts';

parentPort?.on('message', (bytes: Uint8Array) => {
  // eslint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(readDocument(bytes));
});
// eslint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.postMessage('up');
