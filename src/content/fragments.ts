/**
 * The headings of a web page in order, each with the fragment of the address that leads to it (`#settings`). Headings
 * without one are left out.
 */
export type HeadingFragments = readonly (readonly [heading: string, fragment: string])[];

export const fragmentLimits = { headingsMax: 1_000, charactersMax: 200 } as const;

/** Gives each heading of a text its fragment. Asked in the order of the text: a page may repeat a heading. */
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

/** A fragment as it stands in an address; undefined if it is too long to be kept. */
export function writeFragment(id: string): string | undefined {
  const written = new URL(`#${id.toWellFormed()}`, 'https://page.invalid').hash.slice(1);
  return written === '' || written.length > fragmentLimits.charactersMax ? undefined : written;
}
