import type { sizeRoutes } from '@cubicle/contract/resources/sizes.ts';
import type { Catalog } from '../app/catalog.ts';
import type { Handlers } from './handler.ts';

export function sizeHandlers(catalog: Catalog): Handlers<typeof sizeRoutes> {
  return {
    listSizes: ({ authority }) => catalog.sizes(authority),
  };
}
