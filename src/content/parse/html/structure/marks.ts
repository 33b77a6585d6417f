/**
 * Attributes that rewritten elements have. No page writes them, because names of attributes have no colon there; one
 * that does only marks its own text.
 */
export const marks = {
  /** The language of a `pre`. */
  language: 'quarry:language',
  /** The fragment of the address that leads to a heading. */
  fragment: 'quarry:fragment',
  /** The kind of an admonition, which is a `blockquote`. */
  alert: 'quarry:alert',
  /** The label of a footnote, on its text. */
  note: 'quarry:note',
  /** The label of the footnote to which an `a` refers. */
  noteRef: 'quarry:note-ref',
  /** The TeX of a `math`. */
  tex: 'quarry:tex',
} as const;
