// Limits and costs that the contract promises (Part 8). Sizes in bytes, times in milliseconds.

const KiB = 1024;
const MiB = 1024 * KiB;

export const limits = {
  /** JSON request body where a route names no cap of its own. */
  jsonBody: 1 * MiB,
  workspaceBody: 4 * KiB,
  workspaceName: 40,
  workspacesPerAccount: 500,
  apiKeyName: 60,
  /** Live keys of one person in one account. The specification knows a limit but no number. */
  apiKeysPerHolder: 500,
  secretName: 60,
  /** Bytes of UTF-8. */
  secretValue: 4096,
  secretsActive: 100,
  /** Deleting one frees an active place, never one of these. */
  secretsEver: 1_000,
  /** Of one computer; of them, those that are files. */
  secretBindings: 32,
  secretFiles: 8,
  /** A template document, and in it: characters of a script and of a variable, and counts. Numbers of ours. */
  templateBody: 1 * MiB,
  templateScript: 64 * KiB,
  templateEnvValue: 4_096,
  templateLabel: 80,
  templateIcon: 64,
  templateSteps: 200,
  templatePackages: 200,
  /** Marks, words and line ends of a document, and how deep they may nest. A real one has hundreds. */
  templateTokens: 20_000,
  templateDepth: 40,
  templateProblems: 1_000,
  /** References that are published and not retired, and those ever claimed. Numbers of ours. */
  templatesLive: 100,
  templatesEver: 1_000,
  buildSecrets: 32,
  /** Of one family on one host, the newest. */
  buildsKept: 3,
  /** The second ceiling: so many requests for each build of the plan's allowance. */
  buildRequests: 10,
  buildStreams: 8,
  buildStreamMs: 50 * 60_000,
  buildKeepAliveMs: 10_000,
  /** What a build's output may add to its record, in characters, and how long one is readable that left nothing. */
  buildError: 4_096,
  buildDays: 7,
  /** What is read of an upstream's error body before the small envelope answers (Part 1 rule 8). */
  upstreamErrorBody: 1 * MiB,
  upstreamErrorMs: 2_000,
  computerName: 64,
  execBody: 4 * MiB,
  /** The longest a foreground command may take, in seconds. */
  execTimeoutS: 600,
  execOutput: 16 * MiB,
  execChunk: 1 * MiB,
  execBackground: 16,
  file: 64 * MiB,
  path: 4096,
  /** What may be put on a clipboard. */
  clipboard: 64 * KiB,
  /** One input frame, and what of a session's input may wait for its shell. */
  terminalInput: 1 * MiB,
  terminalSessions: 8,
  terminalAttachments: 16,
  /** Columns or rows; a larger screen is taken for this one. */
  terminalSide: 4_096,
  idempotencyHours: 24,
  operationDays: 7,
  /** Minutes; the supplement's bound of idle_suspend_min. */
  idleSuspendMin: 10_080,
  /** What a computer follows that says nothing of its own. */
  idleDefaultMin: 30,
  /** How long after a start or restart a silent guest agent means `starting`. */
  startingMs: 120_000,
  /** WebSockets of one kind open per computer, and per account on one server. Screens: a number of ours. */
  screensPerComputer: 16,
  socketsPerAccount: 128,
  /** The largest message a client may send on a WebSocket (Part 8: a terminal's input). */
  socketMessage: 1 * MiB,
  /** Event streams open at once: of a computer, and of an account's computers on one host. */
  streamsPerComputer: 8,
  streamsPerAccount: 128,
  /** Watched trees, counted after cleaning: of one stream, and of all streams of a computer. */
  treesPerStream: 4,
  treesPerComputer: 32,
  treePath: 256,
  /** Windows an event stream describes, besides the focused one. */
  windowsDescribed: 200,
  signalsPage: 100,
  signalsDefault: 50,
  signalsSince: 2_048,
  webhookBody: 16 * KiB,
  /** Characters of the address as it was sent. */
  webhookUrl: 2_048,
  /** UTF-16 units. */
  webhookDescription: 200,
  webhookComputers: 64,
  webhookComputerId: 64,
  /** Attempts under way at once for one subscription. */
  webhookConcurrency: 4,
  webhookAttempts: 8,
  webhookAttemptMs: 10_000,
  /** How long the old secret still signs after a rotation, an endpoint may fail, `computer.stopped` outlives a plan. */
  webhookHours: 24,
  webhookDeliveriesListed: 100,
  webhookRetentionDays: 7,
  /** New deliveries of one call that repeats a time range. */
  webhookRedeliveries: 10_000,
  revocationEvidence: 100_000,
  revocationEvidenceDays: 90,
} as const;

/** Units of the rate budget by kind of call. */
export const costs = {
  refusedAtTheDoor: 1,
  readOne: 1,
  fleetListing: 5,
  accountQuota: 10,
  /** Reading a document takes longer than reading a record. */
  document: 5,
  guestCall: 5,
  powerChange: 10,
  fileBytes: 10,
  socketAddress: 1,
  webhookWork: 25,
  makeComputer: 100,
} as const;

/** A limit as an error message names it: `4 KiB (4096 bytes)`. */
export function sizeInWords(bytes: number): string {
  if (bytes % MiB === 0) return `${bytes / MiB} MiB (${bytes} bytes)`;
  if (bytes % KiB === 0) return `${bytes / KiB} KiB (${bytes} bytes)`;
  return `${bytes} bytes`;
}
