// What a host could not do in a guest, in the words of the registry.

import type { IncomingMessage } from 'node:http';
import { type ErrorName, Refusal } from '@cubicle/contract/errors.ts';
import { type GuestFailure, guestFailure } from '@cubicle/contract/host/api.ts';
import { upstreamError, UpstreamRefusal } from '../hosts/upstream.ts';

const errorOf: Record<GuestFailure['failure'], ErrorName> = {
  absent: 'computer_not_running',
  not_running: 'computer_not_running',
  suspended: 'computer_suspended_here',
  starting: 'computer_starting',
  silent: 'guest_silent',
  busy: 'guest_busy',
  desktop_absent: 'desktop_absent',
  too_many: 'exec_too_many',
  unknown_command: 'execution_unknown',
  no_file: 'file_unknown',
  refused_file: 'file_refused',
  file_exists: 'file_exists',
  file_too_large: 'file_too_large',
  range: 'range_unsatisfiable',
  no_display: 'desktop_absent',
  no_window: 'window_unknown',
  stale_capture: 'capture_stale',
  clipboard_too_large: 'clipboard_too_large',
  refused_input: 'desktop_refused',
  tiled_window: 'window_tiled',
  unconfirmed: 'window_unconfirmed',
  no_frame: 'frame_unavailable',
  unsupported: 'create_only_unsupported',
  too_many_sockets: 'socket_limit',
};

/** What a host refused with, as the caller is told it. */
export async function refusalFrom(response: IncomingMessage): Promise<Refusal> {
  const status = response.statusCode ?? 500;
  // It does not know us, or not the path: nothing of the caller's doing.
  if (status === 401 || status === 404) {
    response.resume();
    return new Refusal('host_unreachable');
  }
  const body = await upstreamError(response);
  const { success, data } = guestFailure.safeParse(body);
  if (!success) return new UpstreamRefusal(status, body);
  const problem = data.error === '' ? 'The path cannot be used.' : data.error;
  const length: Record<string, string> =
    data.failure === 'range' ? { 'Content-Range': `bytes */${data.size ?? 0}` } : {};
  const words = { problem, limit: data.limit ?? 0, scope: 'computer' };
  return new Refusal(errorOf[data.failure], words, {}, length);
}
