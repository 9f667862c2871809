// What a host asks of the machinery that runs computers. Incus is the real one; the simulated one passes
// the same suite and serves tests of scale and faults.

/** Everything that waits takes one first. */
export interface Context {
  readonly signal: AbortSignal;
}

export interface Shape {
  readonly cpu: number;
  readonly ramMb: number;
  readonly diskGb: number;
}

/** A folder of the host's that a guest sees. */
export interface Mount {
  readonly name: string;
  readonly hostPath: string;
  readonly guestPath: string;
  readonly readOnly: boolean;
}

export interface InstanceSpec {
  /** The computer's id; also the instance's name. */
  readonly id: string;
  readonly shape: Shape;
  /** Ours, kept by the engine with the instance: a host that lost its memory finds its guests by them. */
  readonly labels: Readonly<Record<string, string>>;
  readonly mounts: readonly Mount[];
}

export interface Change {
  /** CPU and memory either way, the disk only upward. */
  readonly shape?: Shape;
  /** Added to the labels, replacing among them; the others stay. */
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * `frozen`: the session is in memory and nothing runs. `unfinished`: being made, or left by a making that
 * was cut off. `broken`: the engine cannot say or act.
 */
export type InstanceStatus = 'running' | 'stopped' | 'frozen' | 'unfinished' | 'broken';

export interface Instance {
  readonly id: string;
  readonly status: InstanceStatus;
  readonly shape: Shape;
  readonly labels: Readonly<Record<string, string>>;
}

export interface Capacity {
  readonly cpu: number;
  readonly ramMb: number;
  readonly diskGb: number;
}

export interface ImageFiles {
  readonly metadata: string;
  readonly rootfs: string;
}

/**
 * Every change may be repeated: what is already so is not an error. A change that was cut off leaves
 * either nothing or something that repeating it completes, and that `list` shows. A caller whose signal
 * aborts is let go at once; a step that has begun may still come to its end.
 */
export interface Engine {
  readonly kind: 'incus' | 'simulated';

  /** The digests of its images. */
  images(context: Context): Promise<string[]>;
  importImage(context: Context, digest: string, files: ImageFiles): Promise<void>;
  removeImage(context: Context, digest: string): Promise<void>;

  list(context: Context): Promise<Instance[]>;
  get(context: Context, id: string): Promise<Instance | undefined>;

  /** Makes a stopped instance from an image. */
  create(context: Context, spec: InstanceSpec, digest: string): Promise<void>;
  /** Makes a stopped instance from another's disk, by copy-on-write. The source is stopped or frozen. */
  copy(context: Context, spec: InstanceSpec, source: string): Promise<void>;
  /** A frozen instance is thawed. */
  start(context: Context, id: string): Promise<void>;
  /** Polite unless forced; a frozen instance is always stopped by force. */
  stop(context: Context, id: string, force: boolean): Promise<void>;
  /** A stopped instance is started. */
  restart(context: Context, id: string): Promise<void>;
  freeze(context: Context, id: string): Promise<void>;
  thaw(context: Context, id: string): Promise<void>;
  /** Of an engine whose instances have no agent: notes that secrets were brought into one. */
  deliver?(context: Context, id: string, serial: number): Promise<void>;
  /** Running or not. */
  change(context: Context, id: string, change: Change): Promise<void>;
  /** Running or not. */
  delete(context: Context, id: string): Promise<void>;

  /** What the machine has for computers in all. */
  capacity(context: Context): Promise<Capacity>;
  /** Of the disk: what nothing has been written to yet, in GB. */
  freeDiskGb(context: Context): Promise<number>;
  /** Bytes of memory in use by a running instance. */
  memoryInUse(context: Context, id: string): Promise<number>;

  close(): Promise<void>;
}

/** The engine refused or failed; the sentence is for the log, never for a caller. */
export class EngineError extends Error {
  /** `absent`: no such instance or image. `room`: no memory or disk left. `busy`: another change holds it. */
  readonly kind: 'absent' | 'room' | 'busy' | 'failed';

  constructor(kind: EngineError['kind'], message: string, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
  }
}
