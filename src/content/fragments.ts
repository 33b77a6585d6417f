/**
 * The headings and the defined terms of a web page, each kind in order and with the fragment of the address that leads to
 * it (`#settings`). Those without one are left out. A term is written as its item is in Markdown, without the marker.
 */
export type HeadingFragments = readonly (readonly [heading: string, fragment: string])[];

export const fragmentLimits = { placesMax: 1_000, charactersMax: 200 } as const;

/** Gives each heading and term of a text its fragment. Asked in the order of the text: a page may repeat a heading. */
export class FragmentReader {
  readonly #left = new Map<string, string[]>();

  constructor(fragments: HeadingFragments = []) {
    for (const [heading, fragment] of fragments.toReversed()) {
      const own = this.#left.get(heading);
      if (own === undefined) this.#left.set(heading, [fragment]);
      else own.push(fragment);
    }
  }

  next(heading: string): string | undefined {
    return this.#left.get(heading)?.pop();
  }
}

/** The fragments of the definitions that a line of a text is within. A term's definition is indented below the term. */
export class TermReader {
  readonly #fragments: FragmentReader;
  #open: { indent: number; fragment: string }[] = [];

  constructor(fragments: FragmentReader) {
    this.#fragments = fragments;
  }

  /** Enters the item that a line starts. */
  enter(line: string): void {
    const indent = line.search(/\S/);
    this.leave(indent);
    // Terms are bold, and headings are not: an item may have the text of a heading.
    if (!line.includes('**')) return;
    const fragment = this.#fragments.next(line.slice(indent).replace(/^\S+\s+/, ''));
    if (fragment !== undefined) this.#open.push({ indent, fragment });
  }

  /** Ends the definitions whose terms are indented at least as far, by default all. */
  leave(indent = 0): void {
    while ((this.#open.at(-1)?.indent ?? -1) >= indent) this.#open.pop();
  }

  get fragment(): string | undefined {
    return this.#open.at(-1)?.fragment;
  }
}

/** A fragment as it stands in an address; undefined if it is too long to be kept. */
export function writeFragment(id: string): string | undefined {
  const written = new URL(`#${id.toWellFormed()}`, 'https://page.invalid').hash.slice(1);
  return written === '' || written.length > fragmentLimits.charactersMax ? undefined : written;
}
