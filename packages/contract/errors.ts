// The error registry: every refusal the service answers with, stated once.
// docs/errors.md is generated from it; the server raises nothing that is not in it (Part 7).

export interface ErrorEntry {
  readonly status: number;
  /** One word to switch on; absent where the specification gives none. */
  readonly reason?: string;
  /** Route-specific detail; absent where the specification gives none. */
  readonly code?: string;
  /** For a person. `{word}` is filled in when raised; the words never name an id the caller sent. */
  readonly sentence: string;
  readonly meaning: string;
  readonly remedy: string;
  readonly retryable: boolean;
}

const entry = (stated: ErrorEntry): ErrorEntry => stated;

export const errors = {
  // 401: no usable credential. Free of charge (Part 5 rule 6).
  credential_missing: entry({
    status: 401,
    reason: 'missing',
    sentence: 'Send an API key in the header "Authorization: Bearer <API_KEY>".',
    meaning: 'The request carried no Authorization header.',
    remedy: 'Send the key as a bearer token.',
    retryable: false,
  }),
  credential_invalid: entry({
    status: 401,
    reason: 'invalid',
    sentence: 'This API key is malformed or unknown.',
    meaning: 'The credential is not a bearer key, has the wrong form, or names no key.',
    remedy: 'Check that the whole key was copied, or make a new one.',
    retryable: false,
  }),
  credential_revoked: entry({
    status: 401,
    reason: 'revoked',
    sentence: 'This API key was revoked.',
    meaning: 'The key existed and was revoked; evidence of that is still held.',
    remedy: 'Make a new key.',
    retryable: false,
  }),

  // 403: the holder, the role, the key's scope (Part 5 rule 7).
  authority_gone: entry({
    status: 403,
    reason: 'revoked',
    sentence: 'The holder of this key can no longer act on this account.',
    meaning: 'The membership was removed, the person is suspended, or the seat is suspended.',
    remedy: 'An owner of the account restores the membership; a new key does not help.',
    retryable: false,
  }),
  account_suspended: entry({
    status: 403,
    reason: 'revoked',
    sentence: 'This account is suspended; only GET /account and GET /whoami still answer.',
    meaning: 'The account is suspended.',
    remedy: 'Ask the operator of this service.',
    retryable: false,
  }),
  role_lowered: entry({
    status: 403,
    reason: 'revoked',
    sentence: 'Your role on this account was lowered while the request was under way.',
    meaning: 'The role fell below what the call needs between its admission and its commit.',
    remedy: 'An owner of the account raises the role again.',
    retryable: false,
  }),
  role_too_low: entry({
    status: 403,
    sentence: 'This call needs the role {needed} or higher; your role is {role}.',
    meaning: 'The role of the key’s holder does not allow the call.',
    remedy: 'Use a key of somebody with the role, or have the role raised.',
    retryable: false,
  }),
  account_wide_only: entry({
    status: 403,
    sentence: 'This call needs an account-wide key; this key is confined to a workspace.',
    meaning: 'A confined key was used on an account-level route.',
    remedy: 'Use an account-wide key.',
    retryable: false,
  }),
  email_unverified: entry({
    status: 403,
    sentence: 'Verify your email before {doing}.',
    meaning: 'The holder’s e-mail address is not verified.',
    remedy: 'Verify the address; the operator can do it with `cubicle admin user set`.',
    retryable: false,
  }),
  key_management_refused: entry({
    status: 403,
    sentence: 'This key may not manage API keys.',
    meaning: 'The calling key was not given the permission to manage keys.',
    remedy: 'Use a key that has it (`manage_keys` is true in GET /whoami).',
    retryable: false,
  }),
  key_scope_refused: entry({
    status: 403,
    sentence: 'A key confined to a workspace makes keys for that workspace only.',
    meaning: 'A confined key asked for a key with another scope.',
    remedy: 'Leave out `workspace_id`, or use an account-wide key.',
    retryable: false,
  }),
  key_manager_refused: entry({
    status: 403,
    sentence: 'A key that manages keys cannot be made through the API.',
    meaning: 'The request asked for `manage_keys`.',
    remedy: 'The operator makes one with `cubicle admin key create --manage-keys`.',
    retryable: false,
  }),

  // 404 and 405. An invisible id reads exactly as a nonexistent one.
  endpoint_unknown: entry({
    status: 404,
    sentence: 'No such endpoint.',
    meaning: 'The path matches nothing in the API.',
    remedy: 'See /docs for the paths.',
    retryable: false,
  }),
  workspace_unknown: entry({
    status: 404,
    sentence: 'No such workspace.',
    meaning: 'The workspace does not exist, or the key cannot see it.',
    remedy: 'List them with GET /workspaces.',
    retryable: false,
  }),
  api_key_unknown: entry({
    status: 404,
    sentence: 'No such API key.',
    meaning: 'The key does not exist, belongs to somebody else, or is outside the key’s scope.',
    remedy: 'List them with GET /api-keys.',
    retryable: false,
  }),
  method_unsupported: entry({
    status: 405,
    sentence: 'This path accepts {allow}.',
    meaning: 'The path exists, the method does not; `Allow` lists the ones that do.',
    remedy: 'Use one of the methods in `Allow`.',
    retryable: false,
  }),

  // 400, 408, 413, 431: the request itself.
  request_malformed: entry({
    status: 400,
    sentence: 'The request is not well-formed HTTP/1.1.',
    meaning: 'The bytes received could not be read as a request.',
    remedy: 'Send a well-formed request; the connection is closed.',
    retryable: false,
  }),
  headers_too_large: entry({
    status: 431,
    sentence: 'The request headers are larger than {limit}.',
    meaning: 'The header section is over the limit.',
    remedy: 'Send fewer or shorter headers.',
    retryable: false,
  }),
  request_timeout: entry({
    status: 408,
    sentence: 'The request did not arrive in time.',
    meaning: 'The headers or the body stalled.',
    remedy: 'Send it again over a faster connection.',
    retryable: true,
  }),
  body_too_large: entry({
    status: 413,
    sentence: 'The request body is larger than {limit}.',
    meaning: 'The body passed the route’s cap; the rest was not read.',
    remedy: 'Send a smaller body.',
    retryable: false,
  }),
  body_incomplete: entry({
    status: 400,
    sentence: 'The connection closed before the whole body arrived.',
    meaning: 'The upload was cut off.',
    remedy: 'Send the request again.',
    retryable: true,
  }),
  body_encoding: entry({
    status: 400,
    sentence: 'Send the body in UTF-8, without a content encoding.',
    meaning: 'The charset, the content encoding or the bytes themselves are not UTF-8.',
    remedy: 'Send plain UTF-8; for JSON `Content-Type: application/json`.',
    retryable: false,
  }),
  body_malformed: entry({
    status: 400,
    sentence: 'The request body is not valid JSON.',
    meaning: 'The body could not be parsed.',
    remedy: 'Send one JSON value.',
    retryable: false,
  }),
  body_refused: entry({
    status: 400,
    sentence: '{problem}',
    meaning: 'A field is missing, unknown, or has a value the route does not take.',
    remedy: 'The sentence names the field and the rule.',
    retryable: false,
  }),
  workspace_name_taken: entry({
    status: 400,
    sentence: 'A workspace of that name already exists in this account.',
    meaning: 'Workspace names are unique within an account.',
    remedy: 'Choose another name.',
    retryable: false,
  }),
  workspace_limit: entry({
    status: 400,
    sentence: 'An account holds at most {limit} workspaces.',
    meaning: 'The account has as many workspaces as it may have.',
    remedy: 'Delete one first.',
    retryable: false,
  }),
  api_key_limit: entry({
    status: 400,
    sentence: 'You hold {limit} API keys in this account, which is the limit.',
    meaning: 'A person holds a bounded number of live keys per account.',
    remedy: 'Revoke one first.',
    retryable: false,
  }),

  // 409 and 429.
  workspace_has_computers: entry({
    status: 409,
    reason: 'unsupported',
    sentence: 'The workspace still holds {count}; move or delete first what is in it.',
    meaning: 'Only an empty workspace can be deleted; nothing was deleted or revoked.',
    remedy: 'Move its computers to another workspace or delete them.',
    retryable: false,
  }),
  rate_limited: entry({
    status: 429,
    sentence: 'The rate budget of this {bucket} is spent; try again in {seconds} s.',
    meaning: 'The account’s or the key’s share of the rate budget does not cover the call.',
    remedy: 'Wait for the time in `Retry-After`.',
    retryable: true,
  }),

  // Computers.
  computer_unknown: entry({
    status: 404,
    sentence: 'No such computer.',
    meaning: 'The computer does not exist, or the key cannot see it.',
    remedy: 'List them with GET /computers.',
    retryable: false,
  }),
  operation_unknown: entry({
    status: 404,
    sentence: 'operation not found',
    meaning: 'The operation does not exist, is older than 7 days, or the key cannot see it.',
    remedy: 'List them with GET /operations.',
    retryable: false,
  }),
  template_unknown: entry({
    status: 404,
    sentence: 'No such template.',
    meaning: 'The reference names no template of this service.',
    remedy: 'List them with GET /templates.',
    retryable: false,
  }),
  template_transfer_unknown: entry({
    status: 404,
    sentence: 'The transfer does not belong to that template.',
    meaning: '`template_transfer` goes with the template whose create was answered with it.',
    remedy: 'Repeat that create with both, or leave the transfer out.',
    retryable: false,
  }),
  template_image_preparing: entry({
    status: 409,
    code: 'template_image_preparing',
    sentence: 'The image of this template is being prepared; repeat the create in a while.',
    meaning: 'No computer was made. `preparation` tells how far the image is.',
    remedy: 'Wait for the time in `Retry-After`, then repeat the create with `template_transfer`.',
    retryable: true,
  }),
  execution_unknown: entry({
    status: 404,
    sentence: 'No such command.',
    meaning:
      'The command never ran, ended more than 10 minutes ago, or the host was restarted since.',
    remedy: 'Start it again if it must run.',
    retryable: false,
  }),
  file_unknown: entry({
    status: 404,
    sentence: '{problem}',
    meaning: 'There is nothing at the path, or its directory is missing.',
    remedy: 'Check the path.',
    retryable: false,
  }),
  query_refused: entry({
    status: 400,
    sentence: '{problem}',
    meaning: 'A query parameter is unknown, repeated, or has a value the route does not take.',
    remedy: 'The sentence names the parameter and the rule.',
    retryable: false,
  }),
  cursor_unknown: entry({
    status: 400,
    sentence: 'The cursor was never issued, or its operation has expired.',
    meaning: 'A cursor comes from the page before and lives as long as its operation.',
    remedy: 'Begin again without a cursor.',
    retryable: false,
  }),
  size_unknown: entry({
    status: 400,
    sentence: 'There is no size of that name; GET /sizes lists them.',
    meaning: 'The size is not one of the service’s.',
    remedy: 'Choose one of GET /sizes.',
    retryable: false,
  }),
  size_and_shape: entry({
    status: 400,
    sentence: 'Give a size, or a template with cpu, ram_mb and disk_gb, not both.',
    meaning: 'A size already names all of these.',
    remedy: 'Leave one of them out.',
    retryable: false,
  }),
  change_groups: entry({
    status: 400,
    sentence: '{problem}',
    meaning: 'A change is one of: rename, resize, idle time, a proxy.',
    remedy: 'Send one group per request.',
    retryable: false,
  }),
  disk_shrinks: entry({
    status: 400,
    sentence: 'A disk only grows; it has {disk} GB now.',
    meaning: 'The asked disk is smaller than the present one.',
    remedy: 'Ask for at least the present size.',
    retryable: false,
  }),
  idempotency_key_invalid: entry({
    status: 400,
    sentence: 'The Idempotency-Key must be 1 to 255 printable ASCII characters without a space.',
    meaning: 'The key has the wrong form; nothing was done.',
    remedy: 'Send a key of that form.',
    retryable: false,
  }),
  exec_timeout_range: entry({
    status: 400,
    sentence: '`timeout_s` must be from 1 to 600 for a command in the foreground.',
    meaning: 'The time is out of bounds.',
    remedy: 'Run a longer command in the background.',
    retryable: false,
  }),
  file_refused: entry({
    status: 400,
    sentence: '{problem}',
    meaning: 'The path names something this call does not take.',
    remedy: 'The sentence says what.',
    retryable: false,
  }),
  quota_exceeded: entry({
    status: 402,
    sentence: '{problem}',
    meaning: 'The plan does not allow it.',
    remedy: 'The sentence names the limit; free some, or change the plan.',
    retryable: false,
  }),
  computer_busy: entry({
    status: 409,
    reason: 'contention',
    sentence: 'Another operation is running on this computer.',
    meaning: 'Operations on one computer take turns.',
    remedy: 'Try again when it has finished.',
    retryable: true,
  }),
  computer_running: entry({
    status: 409,
    reason: 'running',
    sentence: 'The computer is running; stop it first.',
    meaning: 'The change needs a stopped or suspended computer.',
    remedy: 'Stop it.',
    retryable: false,
  }),
  computer_not_running: entry({
    status: 409,
    reason: 'unavailable',
    sentence: 'The computer is not running.',
    meaning: 'The call needs a running computer.',
    remedy: 'Start it.',
    retryable: false,
  }),
  computer_suspended: entry({
    status: 409,
    reason: 'unavailable',
    sentence: 'The computer is suspended; start it first.',
    meaning: 'A suspended computer cannot be restarted.',
    remedy: 'Start it.',
    retryable: false,
  }),
  computer_suspended_here: entry({
    status: 409,
    reason: 'unavailable',
    sentence: 'The computer is suspended, and this call does not resume it.',
    meaning: 'The call reads a running computer only.',
    remedy: 'Start it.',
    retryable: false,
  }),
  computer_not_stopped: entry({
    status: 409,
    reason: 'unsupported',
    sentence: 'The computer must be stopped, without a saved session, to change its workspace.',
    meaning: 'A workspace change needs a stopped computer.',
    remedy: 'Stop it.',
    retryable: false,
  }),
  computer_not_ready: entry({
    status: 409,
    reason: 'unsupported',
    sentence: 'The computer is {status}.',
    meaning: 'A computer that failed to build or is half removed takes no such call.',
    remedy: 'Delete it.',
    retryable: false,
  }),
  computer_starting: entry({
    status: 409,
    reason: 'starting',
    sentence: 'The computer has just started; its agent does not answer yet.',
    meaning: 'For two minutes after a start a silent agent is expected.',
    remedy: 'Try again shortly.',
    retryable: true,
  }),
  resize_needs_move: entry({
    status: 409,
    sentence: 'The computer’s host cannot run it at that size.',
    meaning: '`move` says whether another host could.',
    remedy: 'Choose a smaller size.',
    retryable: false,
  }),
  exec_too_many: entry({
    status: 409,
    sentence: 'The computer already has 16 background commands running.',
    meaning: 'A bounded number of commands runs in the background.',
    remedy: 'Wait for one, or end one.',
    retryable: false,
  }),
  desktop_absent: entry({
    status: 409,
    sentence: 'The computer has no desktop session at the moment.',
    meaning: 'The desktop is not up.',
    remedy: 'Try again when the desktop is up.',
    retryable: true,
  }),
  socket_unknown: entry({
    status: 404,
    sentence: 'This address opens nothing: read the computer again for its present one.',
    meaning:
      'The credential in the address is wrong, was replaced, or its holder may no longer use it; or the computer does not exist.',
    remedy: 'Read the computer and use the addresses in its record.',
    retryable: false,
  }),
  socket_address: entry({
    status: 400,
    sentence:
      'This is a WebSocket with a credential of its own: use the address in `{field}` of the computer’s record as it stands.',
    meaning: 'An API key opens no socket, whether the computer exists or not.',
    remedy: 'Read the computer with GET /computers/{id} and open the address it gives.',
    retryable: false,
  }),
  socket_limit: entry({
    status: 409,
    sentence: 'At most {limit} sockets of this kind are open per {scope}.',
    meaning: 'As many are open as may be; none of them was closed for this one.',
    remedy: 'Close one.',
    retryable: false,
  }),
  guest_busy: entry({
    status: 409,
    reason: 'contention',
    sentence: 'The computer’s agent is busy.',
    meaning: 'Too many calls into this computer at once.',
    remedy: 'Try again shortly.',
    retryable: true,
  }),
  file_exists: entry({
    status: 409,
    reason: 'exists',
    sentence: 'There is already something at that path.',
    meaning: 'The upload was asked to create only.',
    remedy: 'Choose another path, or allow overwriting.',
    retryable: false,
  }),
  capture_stale: entry({
    status: 409,
    reason: 'stale_capture',
    sentence: 'That capture is no longer held; take a new screenshot.',
    meaning: 'Only the newest capture of a computer is held, and none across a restart.',
    remedy: 'Take a new screenshot.',
    retryable: false,
  }),
  frame_unavailable: entry({
    status: 409,
    reason: 'unavailable',
    sentence: 'The computer is suspended, and its last picture cannot be had in that way.',
    meaning: 'A suspended computer has one small JPEG of its last screen, or none.',
    remedy: 'Ask without `fresh`, `region`, `scale`, `quality`, `capture` and PNG, or start it.',
    retryable: false,
  }),
  desktop_refused: entry({
    status: 400,
    sentence: '{problem}',
    meaning: 'The desktop does not take it.',
    remedy: 'The sentence says what.',
    retryable: false,
  }),
  input_refused: entry({
    status: 400,
    sentence: '{problem}',
    meaning: 'The action, its key, its text or its place cannot be; nothing was pressed.',
    remedy: 'The sentence says what.',
    retryable: false,
  }),
  window_unknown: entry({
    status: 404,
    sentence: 'There is no such window.',
    meaning: 'The id names no window, or one that has closed.',
    remedy: 'List the windows.',
    retryable: false,
  }),
  window_tiled: entry({
    status: 400,
    sentence: 'The window is tiled: its place and size are the compositor’s. Float it first.',
    meaning: 'On a tiling desktop only floating windows are moved and resized.',
    remedy: 'Float it with Super+Shift+Space, or with `swaymsg floating enable` as a command.',
    retryable: false,
  }),
  window_unconfirmed: entry({
    status: 504,
    sentence: 'The window did not follow in time; it may or may not do so yet.',
    meaning: 'The window manager was asked, and nothing tells that it obeyed.',
    remedy: 'List the windows before repeating.',
    retryable: false,
  }),
  clipboard_too_large: entry({
    status: 413,
    sentence: 'The clipboard holds more than 128 KiB (131072 bytes).',
    meaning: 'A clipboard is read whole or not at all.',
    remedy: 'Copy less.',
    retryable: false,
  }),
  create_only_unsupported: entry({
    status: 409,
    reason: 'unsupported',
    sentence: 'The file system at that path cannot create a file only where there is none.',
    meaning: 'It has no links, which a create-only upload is made of.',
    remedy: 'Upload elsewhere, or allow overwriting.',
    retryable: false,
  }),
  idempotency_in_progress: entry({
    status: 409,
    reason: 'contention',
    code: 'idempotency_in_progress',
    sentence: 'The call with this Idempotency-Key is still being carried out.',
    meaning: 'The first call has not finished.',
    remedy: 'Ask again later, or read the operation.',
    retryable: true,
  }),
  idempotency_outcome_unknown: entry({
    status: 409,
    code: 'idempotency_outcome_unknown',
    sentence: 'It was never heard how the call with this Idempotency-Key ended.',
    meaning: 'The outcome is unknown; the key is spent.',
    remedy: 'Read the state, then use a new key.',
    retryable: false,
  }),
  idempotency_key_reused: entry({
    status: 422,
    code: 'idempotency_key_reused',
    sentence: 'This Idempotency-Key was used for a different request.',
    meaning: 'Nothing was done.',
    remedy: 'Use a new key.',
    retryable: false,
  }),
  file_too_large: entry({
    status: 413,
    sentence: 'The file has more than 64 MiB; read it in ranges.',
    meaning: 'A whole download is bounded.',
    remedy: 'Send `Range`.',
    retryable: false,
  }),
  range_unsatisfiable: entry({
    status: 416,
    sentence: 'The range names no byte of the file.',
    meaning: '`Content-Range` carries the length.',
    remedy: 'Ask for a range within it.',
    retryable: false,
  }),
  guest_silent: entry({
    status: 502,
    sentence: 'The computer is up, but its agent does not answer.',
    meaning: 'The agent in the guest is down or broke the protocol.',
    remedy: 'Restart the computer.',
    retryable: false,
  }),
  host_unreachable: entry({
    status: 503,
    sentence: 'The computer’s host does not answer.',
    meaning: 'A host could not be asked.',
    remedy: 'Try again later.',
    retryable: true,
  }),
  host_outcome_unknown: entry({
    status: 503,
    sentence:
      'The computer’s host did not answer in time; the change may or may not have happened.',
    meaning: 'The operation in `operation_id` tells what became of it.',
    remedy: 'Read the operation and the computer before repeating.',
    retryable: false,
  }),
  host_failed: entry({
    status: 503,
    sentence: 'The computer’s host could not carry it out.',
    meaning: 'The engine on the host failed; the log of the host says why.',
    remedy: 'Read the computer, then try again.',
    retryable: true,
  }),
  host_no_room: entry({
    status: 503,
    sentence: 'No host has room for the computer now.',
    meaning: 'Memory or disk is short on every host that could run it.',
    remedy: 'Try again later, or a smaller size.',
    retryable: true,
  }),
  engine_absent: entry({
    status: 503,
    sentence: 'This service has no host that runs computers.',
    meaning: 'The engine is off or could not start on this machine; the log says why.',
    remedy: 'Run the service as root on Debian, or join a host.',
    retryable: false,
  }),

  // Templates.
  document_empty: entry({
    status: 400,
    sentence: 'Send the template document as the body, as JSON or YAML.',
    meaning: 'The body has nothing but space.',
    remedy: 'Send the document itself, without an envelope.',
    retryable: false,
  }),
  document_invalid: entry({
    status: 400,
    sentence: 'The document has {count}; `problems` tells what is wrong.',
    meaning: 'The template document does not pass; nothing was done.',
    remedy: 'Mend what `problems` lists; POST /templates/validate tells the same.',
    retryable: false,
  }),
  documents_busy: entry({
    status: 503,
    sentence: 'Too many large documents are being read at the moment.',
    meaning: 'Large documents are read one after the other, and the queue is full.',
    remedy: 'Try again shortly.',
    retryable: true,
  }),
  template_namespace: entry({
    status: 403,
    sentence: '`metadata.namespace` must be the id of this account.',
    meaning: 'Templates are published under the account’s own name only.',
    remedy: 'Use the account id that GET /whoami tells.',
    retryable: false,
  }),
  template_ref_taken: entry({
    status: 409,
    sentence: 'Another document is published under this reference.',
    meaning: 'A published reference never changes.',
    remedy: 'Publish it under a new version.',
    retryable: false,
  }),
  template_ref_retired: entry({
    status: 409,
    sentence: 'This reference was retired at {at}, and is never published again.',
    meaning: 'A retired reference stays retired, for the same document too.',
    remedy: 'Publish it under a new version.',
    retryable: false,
  }),
  template_limit: entry({
    status: 409,
    sentence: 'An account has at most {limit} published templates.',
    meaning: 'The account has as many published references as it may have.',
    remedy: 'Retire one first.',
    retryable: false,
  }),
  template_refs_limit: entry({
    status: 409,
    sentence: 'An account publishes at most {limit} references in all its time.',
    meaning: 'Retired references count as well.',
    remedy: 'Use one that is published.',
    retryable: false,
  }),
  template_retired: entry({
    status: 404,
    sentence: 'This template was retired at {at}.',
    meaning: 'The reference was published once and is no longer.',
    remedy: 'Use another version.',
    retryable: false,
  }),
  template_not_built: entry({
    status: 400,
    sentence: 'No image was ever built for the family {family} of this template.',
    meaning: 'A published document is launched from an image that was built of it.',
    remedy: 'Build the document, or choose another template.',
    retryable: false,
  }),
  template_family: entry({
    status: 400,
    sentence: 'This account may not use the image family that the template names.',
    meaning: 'A family is `golden-` and the account id, or that and `-` and a name.',
    remedy: 'Publish the document with a family of the account’s.',
    retryable: false,
  }),
  templates_incomplete: entry({
    status: 503,
    sentence: 'Part of the fleet did not answer, so this template name could not be looked up.',
    meaning: 'Nothing was done. A host that is away may have a template of that name.',
    remedy: 'Try again when every host answers.',
    retryable: true,
  }),

  template_image_absent: entry({
    status: 409,
    sentence: 'No image of this template is held; build its document.',
    meaning: 'No build of the very document succeeded, or what it made was removed since.',
    remedy: 'Build the document with POST /builds, then repeat the create.',
    retryable: false,
  }),

  // Builds.
  build_unknown: entry({
    status: 404,
    sentence: 'No such build.',
    meaning: 'The build does not exist, is another account’s, or its record is no longer kept.',
    remedy: 'List them with GET /builds.',
    retryable: false,
  }),
  builds_not_in_plan: entry({
    status: 402,
    sentence: 'The account’s plan includes no builds.',
    meaning: 'Building templates needs a plan with builds.',
    remedy: 'Choose a plan that includes them.',
    retryable: false,
  }),
  build_pool_exceeded: entry({
    status: 402,
    sentence:
      'The plan’s storage pool has {pool} GB; computers take {computers} GB of it and kept builds {builds} GB, and this build needs {disk} GB more.',
    meaning: 'Kept builds count against the storage pool at their template’s `disk_gb`.',
    remedy: 'Delete a computer, give the template a smaller disk, or change the plan.',
    retryable: false,
  }),
  build_family: entry({
    status: 403,
    sentence: 'This account may not build the image family {family}.',
    meaning: 'A family is `golden-` and the account id, or that and `-` and a name.',
    remedy: 'Give the document a family of the account’s, or none.',
    retryable: false,
  }),
  build_parent: entry({
    status: 400,
    sentence: '`spec.from` must name a template of the service that is there.',
    meaning: 'Builds begin with one of the service’s own templates.',
    remedy: 'Name one of `system/` in GET /templates.',
    retryable: false,
  }),
  build_secrets_limit: entry({
    status: 400,
    sentence: 'A document names at most {limit} secrets.',
    meaning: '`spec.secrets` is too long for a build.',
    remedy: 'Name fewer.',
    retryable: false,
  }),
  build_secret_unresolved: entry({
    status: 400,
    sentence: 'A secret that the document names is not one of the account’s own.',
    meaning: 'It is a workspace’s, another account’s, deleted, or never was.',
    remedy: 'Name account-wide secrets that GET /secrets lists.',
    retryable: false,
  }),
  build_secret_undeliverable: entry({
    status: 409,
    reason: 'unsupported',
    sentence: 'A secret that the document names cannot be delivered as an environment variable.',
    meaning: 'Its value has a NUL, or the key that it was encrypted with is lost.',
    remedy: 'Replace the value of the secret.',
    retryable: false,
  }),
  build_contention: entry({
    status: 409,
    reason: 'contention',
    sentence: 'Every host that could build this is busy or has no room.',
    meaning:
      'A host runs one build at a time, and needs memory, disk and the parent’s image for it.',
    remedy: 'Try again in a while.',
    retryable: true,
  }),
  build_allowance_spent: entry({
    status: 429,
    sentence:
      'The build allowance is spent: {used} builds in the last 24 hours, of {limit} that the plan allows.',
    meaning: 'The plan’s daily allowance of builds is used up.',
    remedy: 'Wait for the time in `Retry-After`.',
    retryable: true,
  }),
  build_requests_spent: entry({
    status: 429,
    sentence:
      'The ceiling of build requests is met: {used} in the last 24 hours, of {limit} that the plan allows.',
    meaning: 'Requests that were refused or reused an image count here as well.',
    remedy: 'Wait for the time in `Retry-After`.',
    retryable: true,
  }),
  build_streams_limit: entry({
    status: 429,
    sentence: 'An account holds at most {limit} build streams at once.',
    meaning: 'The account has as many streams open as it may have.',
    remedy: 'Close one, or poll GET /builds/{id}/progress.',
    retryable: true,
  }),
  builds_unavailable: entry({
    status: 501,
    sentence: 'This service has no host that can build a template.',
    meaning: 'No host with an engine is part of the service.',
    remedy: 'Run the service as root on Debian, or join a host.',
    retryable: false,
  }),
  build_outcome_unknown: entry({
    status: 503,
    sentence: 'The host did not answer; the build may or may not have begun.',
    meaning: '`build_id` names it; the build tells what became of it.',
    remedy: 'Read the build before repeating.',
    retryable: false,
  }),
  secrets_shut: entry({
    status: 503,
    sentence: 'The service cannot open secrets at the moment; nothing was done.',
    meaning: 'The keyring of this server is missing, unreadable, or not the one of this service.',
    remedy: 'The operator puts the keyring back (CUBICLE_KEYRING); then try again.',
    retryable: true,
  }),

  // Secrets.
  secret_unknown: entry({
    status: 404,
    sentence: 'No such secret.',
    meaning: 'The secret does not exist, was deleted, or is in another scope than the one asked.',
    remedy: 'List them with GET /secrets; a workspace’s secret needs its `workspace_id`.',
    retryable: false,
  }),
  secret_scope_refused: entry({
    status: 403,
    sentence: 'A key confined to a workspace reaches the secrets of that workspace only.',
    meaning: 'A confined key named another scope; `workspace_id: null` names the account’s.',
    remedy: 'Leave out `workspace_id`, or use an account-wide key.',
    retryable: false,
  }),
  secret_workspace_unknown: entry({
    status: 400,
    sentence: '`workspace_id` names no workspace of this account.',
    meaning: 'The workspace does not exist or was deleted.',
    remedy: 'Choose one of GET /workspaces.',
    retryable: false,
  }),
  secret_limit: entry({
    status: 400,
    sentence: 'An account holds at most {limit} secrets.',
    meaning: 'The account has as many active secrets as it may have.',
    remedy: 'Delete one first.',
    retryable: false,
  }),
  secret_lifetime_limit: entry({
    status: 400,
    sentence: 'An account makes at most {limit} secrets in all its time.',
    meaning: 'Deleted secrets count as well.',
    remedy: 'Replace the value of a secret instead of making another.',
    retryable: false,
  }),
  secret_name_taken: entry({
    status: 409,
    reason: 'name_taken',
    sentence: 'A secret of that name already exists in that scope.',
    meaning: 'Names are unique within the account or a workspace, ignoring the case of A to Z.',
    remedy: 'Choose another name, or replace the value of that secret.',
    retryable: false,
  }),
  secret_stale: entry({
    status: 409,
    reason: 'stale_revision',
    sentence: 'The secret has changed since that revision was read.',
    meaning: '`revision_id` is not the present one; nothing was changed.',
    remedy: 'Read the secret again.',
    retryable: false,
  }),
  workspace_has_secrets: entry({
    status: 409,
    reason: 'unsupported',
    sentence: 'The workspace still holds {count}; delete first what is in it.',
    meaning: 'Only an empty workspace can be deleted; nothing was deleted or revoked.',
    remedy: 'Delete its secrets with DELETE /secrets/{id}, their workspace_id and revision_id.',
    retryable: false,
  }),
  secret_binding_unresolved: entry({
    status: 400,
    sentence: 'A secret of the list is none that this computer may have.',
    meaning:
      'It does not exist, was deleted, or is of another workspace: a computer may have those of its own workspace and of the account.',
    remedy: 'Choose from GET /secrets, with and without the computer’s `workspace_id`.',
    retryable: false,
  }),
  secret_bindings_stale: entry({
    status: 409,
    reason: 'stale_revision',
    sentence: 'The computer’s bound list has changed since that version was read.',
    meaning: '`version` is not the present one; nothing was changed.',
    remedy: 'Read the list again.',
    retryable: false,
  }),
  secret_binding_stale: entry({
    status: 409,
    reason: 'stale_revision',
    sentence: 'A `revision_id` of the list is not the one that the computer holds.',
    meaning: 'Only the revision that GET tells can be sent; nothing was changed.',
    remedy: 'Leave `revision_id` out for the latest, or read the list again.',
    retryable: false,
  }),
  proxy_unsupported: entry({
    status: 409,
    reason: 'unsupported',
    sentence: 'No host here takes a proxy for a computer or its browser; nothing was changed.',
    meaning:
      'A proxy that is not used would let traffic out another way, so that it is refused instead, a template’s too.',
    remedy: 'Leave it out; of a template that has one, create with `browser_proxy: null`.',
    retryable: false,
  }),
  secrets_first_binding: entry({
    status: 409,
    reason: 'unsupported',
    sentence: 'Nothing is bound to the computer yet; stop it to bind its first secret.',
    meaning: 'The first secret is bound while the computer is stopped; the next start delivers it.',
    remedy: 'Stop it, bind, and start it.',
    retryable: false,
  }),
  secrets_delivering: entry({
    status: 409,
    reason: 'contention',
    sentence: 'Secrets are being delivered to the computer.',
    meaning: 'A replaced value is on its way into the running computer.',
    remedy: 'Try again in a moment.',
    retryable: true,
  }),
  secrets_changed: entry({
    status: 409,
    reason: 'unsupported',
    sentence: 'The secrets bound to the computer have changed while it runs; restart it first.',
    meaning: 'A session is saved only with the secrets that are bound.',
    remedy: 'Restart it, or bind again what it was started with.',
    retryable: false,
  }),
  secrets_need_start: entry({
    status: 409,
    reason: 'unsupported',
    sentence: 'The computer is stopped and has secrets bound to it; start it.',
    meaning: 'A restart starts only a stopped computer without secrets.',
    remedy: 'Start it.',
    retryable: false,
  }),
  secret_bound_gone: entry({
    status: 409,
    reason: 'unsupported',
    sentence: 'A secret bound to the computer was deleted; remove its binding first.',
    meaning: 'The computer is neither started nor resumed without what is bound to it.',
    remedy: 'PUT /computers/{id}/secrets without that secret.',
    retryable: false,
  }),
  secrets_undelivered: entry({
    status: 503,
    sentence: 'The computer’s secrets could not be delivered, so it was stopped.',
    meaning:
      'Its guest did not take them in time, or one of them was deleted or cannot be a variable.',
    remedy: 'Read the computer and what is bound to it, then start it.',
    retryable: true,
  }),
  computer_has_secrets: entry({
    status: 409,
    reason: 'unsupported',
    sentence: 'Secrets are bound to the computer; remove the bindings to change its workspace.',
    meaning: 'Which secrets a computer may have depends on its workspace.',
    remedy: 'PUT /computers/{id}/secrets with an empty list.',
    retryable: false,
  }),
  keyring_unavailable: entry({
    status: 503,
    sentence: 'The service cannot use its keyring at the moment; nothing was changed.',
    meaning: 'The keyring of this server is missing, unreadable, or not the one of this service.',
    remedy: 'The operator puts the keyring back (CUBICLE_KEYRING); then try again.',
    retryable: true,
  }),

  // 5xx.
  unexpected: entry({
    status: 500,
    sentence: 'Something went wrong on our side.',
    meaning: 'An unexpected exception; the details are in the log under the request id.',
    remedy: 'Report it with the request id.',
    retryable: false,
  }),
  upstream_failed: entry({
    status: 502,
    sentence: 'The computer’s host answered with an error that could not be read.',
    meaning:
      'A host’s error was not JSON, malformed, cut off, oversized or stalled. The status is the host’s own.',
    remedy: 'Read the state before repeating a change.',
    retryable: false,
  }),
  webhook_unknown: entry({
    status: 404,
    sentence: 'No such webhook.',
    meaning: 'The subscription does not exist, or the key cannot see it.',
    remedy: 'List them with GET /webhooks.',
    retryable: false,
  }),
  delivery_unknown: entry({
    status: 404,
    sentence: 'No such delivery.',
    meaning: 'The delivery is none of this subscription’s, or its record is no longer kept.',
    remedy: 'List them with GET /webhooks/{id}/deliveries.',
    retryable: false,
  }),
  webhook_url_refused: entry({
    status: 400,
    sentence: '{problem}',
    meaning:
      'The address is no https address without credentials, or it does not lead to a public address.',
    remedy: 'Give an https address that resolves to public addresses alone.',
    retryable: false,
  }),
  webhook_unresolved: entry({
    status: 400,
    sentence: '{host} did not resolve',
    meaning: 'The host’s name has no address, or could not be looked up at this moment.',
    remedy: 'Check the name; try again if it is right.',
    retryable: false,
  }),
  webhooks_not_in_plan: entry({
    status: 402,
    sentence: 'The account’s plan includes no webhooks.',
    meaning: 'Making, enabling, readdressing and testing a webhook need a plan with webhooks.',
    remedy: 'Choose a plan that includes them.',
    retryable: false,
  }),
  webhook_limit: entry({
    status: 409,
    sentence: 'The plan allows {limit} webhooks in the account, and it has as many.',
    meaning: 'The whole account’s subscriptions count, whichever key asks.',
    remedy: 'Delete one first.',
    retryable: false,
  }),
  webhook_disabled: entry({
    status: 409,
    sentence: 'The webhook is disabled.',
    meaning: 'A disabled subscription takes no deliveries.',
    remedy: 'Enable it with PATCH /webhooks/{id}.',
    retryable: false,
  }),
  delivery_unfinished: entry({
    status: 409,
    sentence: 'The delivery is still {state}.',
    meaning: 'Only a finished delivery is repeated.',
    remedy: 'Wait until it is delivered, exhausted or dropped.',
    retryable: false,
  }),
  store_unavailable: entry({
    status: 503,
    sentence: 'The database did not answer; a change may or may not have happened.',
    meaning: 'The store could not be reached or did not answer in time.',
    remedy: 'Read the state before repeating a change.',
    retryable: true,
  }),
  fleet_unconfirmed: entry({
    status: 503,
    sentence: 'Part of the fleet did not answer, so the workspace could not be confirmed empty.',
    meaning: 'Nothing was deleted or revoked.',
    remedy: 'Try again when every host answers.',
    retryable: true,
  }),
  not_ready: entry({
    status: 503,
    sentence: 'The service is starting or stopping.',
    meaning: 'Requests cannot be served at this moment.',
    remedy: 'Try again shortly.',
    retryable: true,
  }),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorName = keyof typeof errors;

/** The error object of Part 2, before `request_id` is added. */
export interface ErrorBody {
  error: string;
  reason?: string;
  code?: string;
  [extra: string]: unknown;
}

/** What rules throw; the door turns it into an answer. */
export class Refusal extends Error {
  readonly error: ErrorName;
  readonly extra: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    error: ErrorName,
    words: Readonly<Record<string, string | number>> = {},
    extra: Readonly<Record<string, unknown>> = {},
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(fill(errors[error].sentence, words));
    this.error = error;
    this.extra = extra;
    this.headers = headers;
  }

  get status(): number {
    return errors[this.error].status;
  }

  body(): ErrorBody {
    const { reason, code }: ErrorEntry = errors[this.error];
    return {
      error: this.message,
      ...(reason === undefined ? {} : { reason }),
      ...(code === undefined ? {} : { code }),
      ...this.extra,
    };
  }
}

function fill(sentence: string, words: Readonly<Record<string, string | number>>): string {
  return sentence.replace(/\{(\w+)\}/g, (_, word: string) => {
    const value = words[word];
    if (value === undefined) throw new Error(`the sentence "${sentence}" needs {${word}}`);
    return String(value);
  });
}
