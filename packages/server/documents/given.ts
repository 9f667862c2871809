// A document as a caller gave it.

import { Refusal } from '@cubicle/contract/errors.ts';
import type { Reading, ValidDocument } from './read.ts';
import type { DocumentReader } from './reader.ts';

const spaces = new Set(Buffer.from(' \t\r\n'));

export async function readGiven(reader: DocumentReader, bytes: Buffer): Promise<Reading> {
  if (bytes.every((byte) => spaces.has(byte))) throw new Refusal('document_empty');
  return reader.read(bytes);
}

export function requireValid(reading: Reading): ValidDocument {
  if (reading.valid) return reading;
  const { problems } = reading;
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  throw new Refusal('document_invalid', { count }, { problems });
}
