import { templateSchema } from '@cubicle/contract/template-schema.ts';
import type { templateRoutes } from '@cubicle/contract/resources/templates.ts';
import type { Templates } from '../app/templates.ts';
import type { Handlers } from './handler.ts';
import { Reply } from './reply.ts';

export function templateHandlers(
  templates: Templates,
  baseUrl: string,
): Handlers<typeof templateRoutes> {
  const schema = templateSchema(`${baseUrl}/templates/schema`);
  return {
    listTemplates: async ({ authority }) => {
      const { templates: value, incomplete } = await templates.list(authority);
      const headers = incomplete === undefined ? {} : { 'X-GC-Incomplete': incomplete };
      return new Reply({ value, headers });
    },
    getTemplateSchema: async () => schema,
    validateTemplate: ({ document }) => templates.validate(document),
    publishTemplate: async ({ authority, document }) => {
      const { made, published } = await templates.publish(authority, document);
      return new Reply({ status: made ? 201 : 200, value: published });
    },
    getTemplate: ({ authority, parameters: { namespace, name }, query }) =>
      templates.get(authority, namespace, name, query.version),
    retireTemplate: ({ authority, parameters: { namespace, name }, query }) =>
      templates.retire(authority, namespace, name, query.version),
  };
}
