// What a caller asks of mouse or keyboard cannot be, such as a key without a name. Found before anything
// is pressed.

export class InvalidInput extends Error {
  readonly trouble = 'invalid';
}
