// Runs the script that reads pages inside one, in a world of its own: the page's scripts share its elements
// and nothing else.

import { pageSeen, type PageSeen } from '@cubicle/contract/guest/page.ts';
import { fieldsOf, type PageSession } from './devtools.ts';
import script from './page/main.ts?text';

/** Pages keep their worlds by name until they are left: under one name there is one, however often we ask. */
const worldName = 'cubicle';
/** Above what the script gives itself. */
const mostMs = 1_500;

/** Null for a page that is not to be seen. */
export async function readPage(session: PageSession): Promise<PageSeen | null> {
  const { frameTree } = await session.ask('Page.getFrameTree', {});
  const { id: frameId } = fieldsOf(fieldsOf(frameTree)['frame']);
  const world = await session.ask('Page.createIsolatedWorld', { frameId, worldName });
  const { result } = await session.ask('Runtime.evaluate', {
    contextId: world['executionContextId'],
    expression: `${script};page.default()`,
    returnByValue: true,
    timeout: mostMs,
  });
  const seen = fieldsOf(result)['value'];
  if (seen === null || pageSeen(seen)) return seen;
  throw new Error('a page told of itself in the wrong shape');
}
