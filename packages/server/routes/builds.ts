import type { buildRoutes } from '@cubicle/contract/resources/builds.ts';
import type { BuildStreams } from '../app/build-streams.ts';
import type { Builds } from '../app/builds.ts';
import type { Handlers } from './handler.ts';
import { Reply } from './reply.ts';

export function buildHandlers(builds: Builds, streams: BuildStreams): Handlers<typeof buildRoutes> {
  return {
    listBuilds: async ({ authority, query }) => {
      const partial = query.allow_partial === '1';
      const { builds: value, short } = await builds.list(authority, partial);
      return new Reply({ value, headers: short ? { 'X-GC-Incomplete': 0 } : {} });
    },
    createBuild: ({ authority, document, query }) =>
      builds.create(authority, document, query.no_reuse === 'true'),
    getBuild: ({ authority, parameters }) => builds.get(authority, parameters.id),
    getBuildProgress: ({ authority, parameters }) => builds.progress(authority, parameters.id),
    streamBuild: async ({ authority, parameters, requestId, signal, onLastWord }) => {
      const { id } = await builds.row(authority, parameters.id);
      const stream = await streams.open(authority, id, { requestId, gone: signal });
      onLastWord(() => stream.probe());
      const headers = {
        'Content-Type': 'text/event-stream',
        // What stands between us and the reader passes each event on as it comes.
        'X-Accel-Buffering': 'no',
      };
      return new Reply({ headers, bytes: stream, cut: stream.cut });
    },
  };
}
