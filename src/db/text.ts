/** Replaces what PostgreSQL text cannot store: documents and pages may contain NUL and lone surrogates. */
export function storableText<Text extends string | undefined>(text: Text): Text {
  return text?.replaceAll('\0', '\u{fffd}').toWellFormed() as Text;
}
