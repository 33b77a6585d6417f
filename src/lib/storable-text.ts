/** Replaces what PostgreSQL text cannot store: NUL and lone surrogates, which documents, pages and other servers send. */
export function storableText<Text extends string | undefined>(text: Text): Text {
  return text?.replaceAll('\0', '\u{fffd}').toWellFormed() as Text;
}
