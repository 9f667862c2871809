// What the page takes from the contract.

export { closeCodes } from '@cubicle/contract/sockets.ts';

/** Not from the contract's table of routes, which would bring all of its shapes along. */
export const basePath = '/api/v1';
