/** One entry of a feed. */
export type FeedEntry = {
  id: string;
  url?: string;
  title?: string;
  /** The text of the entry; empty if the feed has none. */
  text: string;
  isHtml: boolean;
  updated?: string;
  /** Whether the feed states that the entry was deleted (RFC 6721). */
  isDeleted: boolean;
};

/** What was read of a feed. `isWhole` is false if it was longer than what is read. */
export type FeedFile = { title?: string; entries: FeedEntry[]; isWhole: boolean };

export const feedLimits = { bytesMax: 10 * 1024 * 1024, entriesMax: 1_000, entryCharactersMax: 1024 * 1024 } as const;
