import type { computerRoutes } from '@cubicle/contract/resources/computers.ts';
import { Refusal } from '@cubicle/contract/errors.ts';
import type { Authority } from '../app/authority.ts';
import type { ComputerChanges } from '../app/computer-changes.ts';
import type { Computers } from '../app/computers.ts';
import type { Settled } from '../app/settle.ts';
import type { Handlers } from './handler.ts';
import { Reply } from './reply.ts';

export function computerHandlers(
  computers: Computers,
  changes: ComputerChanges,
): Handlers<typeof computerRoutes> {
  /** What was settled; the record of a running computer gets its addresses, which replays never carry. */
  const settled = async (authority: Authority, { status, body, computer }: Settled) => {
    const running = (body as { status?: string }).status === 'running';
    if (computer === undefined || !running) return new Reply({ status, value: body });
    const host = { id: computer.id, status: 'running', ready: false } as const;
    const surface = computers.withSurface(authority, computer, host);
    return new Reply({ status, value: { ...surface, ...(body as object) } });
  };

  return {
    listComputers: async ({ authority, query }) => {
      const { computers: value, incomplete } = await computers.list(authority, {
        allowPartial: query.allow_partial === '1',
        state: query.state,
        workspaceId: query.workspace_id,
      });
      const headers = incomplete === undefined ? {} : { 'X-GC-Incomplete': incomplete };
      return new Reply({ value, headers });
    },
    createComputer: async ({ authority, body, keyed }) =>
      settled(authority, await changes.create(authority, body, keyed)),
    getComputer: ({ authority, parameters }) => computers.get(authority, parameters.id),
    changeComputer: async ({ authority, parameters: { id }, body, keyed }) => {
      const { name, idle_suspend_min: idle, browser_proxy, egress_proxy, ...shape } = body;
      const resizes = Object.keys(shape).length > 0;
      const alone = [name, idle, browser_proxy, egress_proxy].filter(
        (value) => value !== undefined,
      );
      const groups = alone.length + (resizes ? 1 : 0);
      if (groups !== 1) {
        throw new Refusal('change_groups', {
          problem:
            groups === 0
              ? 'Name something to change: name, cpu, ram_mb, disk_gb, idle_suspend_min, browser_proxy or egress_proxy.'
              : 'Change one thing per request: the name, the size, the idle time, or one of the proxies.',
        });
      }
      if (name !== undefined) return computers.rename(authority, id, name, keyed);
      if (idle !== undefined) return computers.setIdle(authority, id, idle, keyed);
      const proxy = browser_proxy ?? egress_proxy;
      if (!resizes) return computers.setProxy(authority, id, proxy ?? null, keyed);
      return settled(authority, await changes.resize(authority, id, shape, keyed));
    },
    deleteComputer: async ({ authority, parameters, keyed }) =>
      settled(authority, await changes.delete(authority, parameters.id, keyed)),
    startComputer: async ({ authority, parameters, query, keyed }) => {
      const resumeOnly = query.resume_only === 'true';
      return settled(authority, await changes.start(authority, parameters.id, resumeOnly, keyed));
    },
    stopComputer: async ({ authority, parameters, query, keyed }) => {
      const force = query.force === 'true';
      return settled(authority, await changes.stop(authority, parameters.id, force, keyed));
    },
    suspendComputer: async ({ authority, parameters, keyed }) =>
      settled(authority, await changes.suspend(authority, parameters.id, keyed)),
    restartComputer: async ({ authority, parameters, keyed }) =>
      settled(authority, await changes.restart(authority, parameters.id, keyed)),
    cloneComputer: async ({ authority, parameters, body, keyed }) =>
      settled(authority, await changes.clone(authority, parameters.id, body, keyed)),
    moveComputerToWorkspace: ({ authority, parameters, body }) =>
      computers.moveToWorkspace(authority, parameters.id, body.workspace_id),
  };
}
