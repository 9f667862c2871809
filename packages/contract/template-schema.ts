// The JSON Schema of template documents, made from what they are checked against.

import { z } from 'zod';
import { templateDocument } from './template-document.ts';

export function templateSchema(address: string): Record<string, unknown> & { $id: string } {
  const made = z.toJSONSchema(templateDocument, { io: 'input' });
  const { id: _, ...shape } = made.$defs?.['TemplateDocument'] ?? {};
  return { $schema: made.$schema, $id: address, title: 'Cubicle template document', ...shape };
}
