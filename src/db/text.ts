/** Text that PostgreSQL takes: documents and pages may contain NUL and half surrogate pairs. */
export function storableText<Text extends string | undefined>(text: Text): Text {
  return text?.replaceAll('\0', '\u{fffd}').toWellFormed() as Text;
}
