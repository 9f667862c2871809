// How far a build is, told from what mmdebstrap, apt and dpkg write: packages fetched, unpacked, set up.

export interface Progress {
  readonly stage: string;
  /** Of the whole build, 0 to 1; never falls. */
  readonly done: number;
}

/** Shares of the whole as measured: 429 s on two busy cores with a near mirror. */
const shares = {
  'Reading the package lists': 0.02,
  'Making a minimal Debian': 0.22,
  'Downloading the desktop': 0.08,
  'Unpacking the desktop': 0.38,
  'Setting up the desktop': 0.11,
  'Making it ours': 0.03,
  'Compressing the image': 0.16,
} as const;

type Stage = keyof typeof shares;
const stages = Object.keys(shares) as Stage[];

/** Packages whose three events make up the minimal Debian. */
const eventsPerPackage = 3;

export class BuildStages {
  readonly #tell: (progress: Progress) => void;
  #stage: Stage = 'Reading the package lists';
  /** Of the packages that apt is at: the essential ones first, then all others. */
  #packages = 0;
  #bytes = 0;
  #count = 0;
  #told = -1;

  constructor(tell: (progress: Progress) => void) {
    this.#tell = tell;
    this.#at(0);
  }

  /** One line of the build's output. */
  line(text: string): void {
    if (text.startsWith('I: ')) this.#phase(text.slice(3));
    const total = /^\d+ upgraded, (\d+) newly installed/.exec(text);
    if (total !== null) this.#packages = Number(total[1]);
    const need = /^Need to get (?:[\d.]+ ?\w+\/)?([\d.]+) ?([kMG]?B) of archives/.exec(text);
    if (need !== null) this.#bytes = bytes(need[1], need[2]);
    if (this.#stage === 'Making a minimal Debian') this.#essential(text);
    else if (this.#packages > 0) this.#desktop(text);
  }

  /** How much of the root file system is in the image. */
  compressed(share: number): void {
    this.#enter('Compressing the image');
    this.#at(share);
  }

  /** Said apart: the shares need not add up to exactly one. */
  finished(): void {
    this.#tell({ stage: 'Compressing the image', done: 1 });
  }

  #phase(text: string): void {
    if (text.startsWith('downloading packages')) this.#enter('Making a minimal Debian');
    if (text.startsWith('installing remaining')) this.#enter('Downloading the desktop');
    if (text.startsWith('running --customize-hook')) this.#enter('Making it ours');
  }

  #essential(text: string): void {
    if (!/^(Get:|Unpacking |Setting up )/.test(text) || this.#packages === 0) return;
    this.#count += 1;
    this.#at(this.#count / (this.#packages * eventsPerPackage));
  }

  #desktop(text: string): void {
    const fetched = /^Get:\d+ .* \[([\d.,]+) ?([kMG]?B)\]$/.exec(text);
    if (fetched !== null && this.#stage === 'Downloading the desktop') {
      this.#count += bytes(fetched[1], fetched[2]);
      this.#at(this.#count / Math.max(this.#bytes, 1));
    }
    if (text.startsWith('Unpacking ')) this.#package('Unpacking the desktop');
    if (text.startsWith('Setting up ')) this.#package('Setting up the desktop');
  }

  /** Some packages are set up before others are unpacked: a stage that is over stays over. */
  #package(stage: Stage): void {
    if (stages.indexOf(stage) < stages.indexOf(this.#stage)) return;
    // A handful are set up in between because others need them to unpack.
    if (
      stage === 'Setting up the desktop' &&
      this.#stage !== stage &&
      this.#count < this.#packages
    ) {
      return;
    }
    this.#enter(stage);
    this.#count += 1;
    this.#at(this.#count / this.#packages);
  }

  #enter(stage: Stage): void {
    if (stage === this.#stage) return;
    this.#stage = stage;
    this.#count = 0;
    if (stage === 'Downloading the desktop') this.#packages = 0;
    this.#at(0);
  }

  #at(share: number): void {
    const before = stages.slice(0, stages.indexOf(this.#stage));
    const past = before.reduce((sum, stage) => sum + shares[stage], 0);
    const done = past + shares[this.#stage] * Math.min(share, 1);
    if (done <= this.#told || done >= 1) return;
    this.#told = done;
    this.#tell({ stage: this.#stage, done });
  }
}

const units: Record<string, number> = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9 };

function bytes(number = '0', unit = 'B'): number {
  return Number(number.replaceAll(',', '')) * (units[unit] ?? 1);
}
