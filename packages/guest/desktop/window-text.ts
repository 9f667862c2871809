// Text that windows say of themselves: in two encodings, of any length, and with anything in it.

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** What is cut off or no text at all shows as the sign for that. */
export function decodeText(bytes: Uint8Array, isUtf8: boolean): string {
  return isUtf8 ? utf8.decode(bytes) : Buffer.from(bytes).toString('latin1');
}

/** At most so many bytes of UTF-8, cut between characters. */
export function shortened(text: string, most: number): string {
  if (Buffer.byteLength(text) <= most) return text;
  const bytes = Buffer.from(text);
  let end = most;
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}
