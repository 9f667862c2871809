// The images behind the service's templates. The base image is there before a host serves; the others are
// made behind its back, so that nobody waits for what nobody may want.

import type { Context, Engine, ImageFiles } from './engine/engine.ts';
import {
  ensureBaseImage,
  ensureTilingImage,
  type ImageOptions,
  tilingDigest,
} from './images/build.ts';
import type { Progress } from './images/stages.ts';

/** `copying`: made, and on its way into the engine. */
export interface Preparation {
  readonly state: 'preparing' | 'copying' | 'failed';
  readonly error: string;
}

/** An image that is not made yet: nothing was done. */
export class ImagePreparing extends Error {
  readonly preparation: Preparation;

  constructor(preparation: Preparation) {
    super('the image is being prepared');
    this.preparation = preparation;
  }
}

export interface TemplatesOptions {
  readonly engine: Engine;
  readonly cacheDir: string;
  readonly say: (line: string) => void;
  readonly log: (problem: unknown) => void;
}

interface Made extends ImageFiles {
  readonly digest: string;
}

const importMs = 600_000;
/** How long a create waits for that: a quiet machine takes two seconds. */
const patienceMs = 20_000;
const names = { base: 'base', tiling: 'tiling' } as const;

export class Templates {
  /** What new computers are made of unless another template is asked for. */
  readonly base: string;
  /** Whether their images are made or not. */
  readonly names: readonly string[] = Object.values(names);
  readonly #options: TemplatesOptions;
  readonly #ending = new AbortController();
  #making: Promise<void> | undefined;
  #tiling: Made | Preparation = { state: 'preparing', error: '' };
  #copying: Promise<void> | undefined;

  private constructor(options: TemplatesOptions, base: string) {
    this.#options = options;
    this.base = base;
  }

  static async open(
    { signal }: Context,
    options: TemplatesOptions,
    progress: (progress: Progress) => void,
  ): Promise<Templates> {
    const { engine, cacheDir, say } = options;
    const image =
      engine.kind === 'simulated'
        ? simulated(names.base)
        : await ensureBaseImage({ cacheDir, say, progress, signal });
    const templates = new Templates(options, image.digest);
    const context = { signal: AbortSignal.any([signal, AbortSignal.timeout(importMs)]) };
    const known = await engine.images(context);
    if (!known.includes(image.digest)) say('Importing the base image');
    await templates.#import(context, image);
    // Computers made from an earlier one keep their disks.
    const used = [image.digest, await tilingDigest(image.digest)];
    for (const old of known.filter((digest) => !used.includes(digest))) {
      await engine.removeImage(context, old);
    }
    return templates;
  }

  /** The digests of those that are made. */
  get images(): Record<string, string> {
    const made = 'digest' in this.#tiling ? { [names.tiling]: this.#tiling.digest } : {};
    return { [names.base]: this.base, ...made };
  }

  /** Makes the images that are not there yet, in its own time. */
  prepareSoon(): void {
    this.#making ??= this.#prepare().finally(() => {
      this.#making = undefined;
    });
  }

  /** The digest of its image, which the engine has. Throws ImagePreparing while it is not made. */
  async imageOf(context: Context, template: string): Promise<string> {
    if (template !== names.tiling) return this.base;
    const found = this.#tiling;
    if (!('digest' in found)) {
      this.prepareSoon();
      throw new ImagePreparing(found);
    }
    await this.#copied(context, found);
    return found.digest;
  }

  /** The engine gets it when it is first wanted. That goes on when a create has lost its patience. */
  async #copied({ signal }: Context, image: Made): Promise<void> {
    this.#copying ??= this.#import(
      { signal: AbortSignal.any([this.#ending.signal, AbortSignal.timeout(importMs)]) },
      image,
    ).finally(() => {
      this.#copying = undefined;
    });
    const impatient = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
    const late = Promise.withResolvers<never>();
    const leave = () => late.reject(new ImagePreparing({ state: 'copying', error: '' }));
    impatient.addEventListener('abort', leave, { once: true });
    try {
      await Promise.race([this.#copying, late.promise]);
    } finally {
      impatient.removeEventListener('abort', leave);
      // Whoever asks again hears of a failure.
      this.#copying?.catch(() => {});
    }
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#making;
    await this.#copying?.catch(() => {});
  }

  async #prepare(): Promise<void> {
    const { engine, cacheDir, say, log } = this.#options;
    const { signal } = this.#ending;
    const options: ImageOptions = {
      cacheDir,
      say,
      signal,
      progress: inQuarters(say),
      unhurried: true,
    };
    try {
      this.#tiling =
        engine.kind === 'simulated' ? simulated(names.tiling) : await ensureTilingImage(options);
    } catch (error) {
      if (signal.aborted) return;
      log(error);
      this.#tiling = { state: 'failed', error: 'The image could not be made; it is tried again.' };
    }
  }

  async #import(context: Context, { digest, ...files }: Made): Promise<void> {
    const { engine } = this.#options;
    if (!(await engine.images(context)).includes(digest)) {
      await engine.importImage(context, digest, files);
    }
  }
}

const simulated = (name: string): Made => ({
  digest: name === names.base ? 'simulated' : `simulated-${name}`,
  metadata: '',
  rootfs: '',
});

/** Others speak on the same screen by now: a line for every quarter. */
function inQuarters(say: (line: string) => void): (progress: Progress) => void {
  let told = 0;
  return ({ stage, done }) => {
    const quarter = Math.floor(done * 4);
    if (quarter <= told) return;
    told = quarter;
    say(done >= 1 ? 'The tiling image is ready' : `The tiling image: ${stage}, ${quarter * 25} %`);
  };
}
