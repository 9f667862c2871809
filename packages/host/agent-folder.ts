// The folder mounted read-only into every guest: Node and the agent, so that images carry neither.

import { copyFile, link, mkdir, realpath, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleAgent } from '@cubicle/guest/bundle.ts';
import { writeWhole } from './whole-file.ts';

export async function agentFolder(hostFolder: string): Promise<string> {
  const folder = join(hostFolder, 'agent');
  await mkdir(folder, { recursive: true, mode: 0o755 });
  const node = await realpath(process.execPath);
  const draft = join(folder, `.node.${process.pid}`);
  await rm(draft, { force: true });
  // A hundred megabytes: linked where the file system allows it.
  await link(node, draft).catch(() => copyFile(node, draft));
  await rename(draft, join(folder, 'node'));
  await writeWhole(join(folder, 'agent.mjs'), await bundleAgent(), 0o644);
  return folder;
}
