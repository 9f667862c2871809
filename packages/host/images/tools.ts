// The programs that make an image, installed from the machine's own archive when they are missing.

import { apt } from '../engine/incus/apt.ts';
import { findProgram } from '../engine/incus/programs.ts';

/** Each program by the package that has it. */
const programs: Record<string, string> = {
  mmdebstrap: 'mmdebstrap',
  tar2sqfs: 'squashfs-tools-ng',
};

export async function ensureTools(say: (line: string) => void): Promise<void> {
  const missing = await missingPackages();
  if (missing.length === 0) return;
  say(`Installing ${missing.join(' and ')}, which images are made with`);
  const install = () => apt(['install', '--yes', '--no-install-recommends', ...missing], say);
  // The machine's lists may be old or absent.
  await install().catch(() => apt(['update'], say).then(install));
  const still = await missingPackages();
  if (still.length > 0) throw new Error(`Installed, but not found: ${still.join(', ')}`);
}

async function missingPackages(): Promise<string[]> {
  const found = await Promise.all(Object.keys(programs).map(findProgram));
  return Object.values(programs).filter((_, index) => found[index] === undefined);
}
