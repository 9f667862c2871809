// What a peer did that the protocol forbids. The connection does not survive it.

export type Violation =
  | 'frame_type'
  | 'frame_size'
  | 'frame_channel'
  | 'frame_stream'
  | 'frame_order'
  | 'channel_unknown'
  | 'channel_limit'
  | 'credit'
  | 'message'
  | 'flood'
  | 'late';

export class ProtocolError extends Error {
  readonly violation: Violation;

  constructor(violation: Violation, message: string) {
    super(message);
    this.violation = violation;
  }
}
