/** The limits of a request body: bytes received, bytes decoded, and number of values. */
export type BodyBudget = {
  readonly bytesMax: number;
  readonly valuesMax: number;
  /** Matches the paths of long strings that the handler reads with `findLongText`. */
  readonly longTextAt?: RegExp;
};

const kib = 1024;

/**
 * The budgets that routes use. The default is `small` for routes without a body and for routes that need no
 * credential or only a key, and `plain` for all others. `QUARRY_BODY_BYTES_MAX` bounds every budget.
 */
export const bodyBudgets = {
  small: { bytesMax: 16 * kib, valuesMax: 500 },
  plain: { bytesMax: 64 * kib, valuesMax: 2_000 },
  /**
   * Free maps: three bytes of JSON for each of the 256 KiB stored, in case everything is escaped, and the other
   * members.
   */
  map: { bytesMax: 1024 * kib, valuesMax: 150_000 },
  /** Graphs and access lists. */
  graph: { bytesMax: 4 * 1024 * kib, valuesMax: 150_000 },
  /** Documents, up to the configured size. */
  document: {
    bytesMax: Number.POSITIVE_INFINITY,
    valuesMax: 150_000,
    longTextAt: /^(?:(?:(?:items|upserts)\.\d+\.)?content\.)?data$/,
  },
  /** Pictures of agents and logos of orgs. */
  picture: { bytesMax: Number.POSITIVE_INFINITY, valuesMax: 150_000, longTextAt: /^(?:profile_picture|logo)\.data$/ },
  /** Messages, and tools that carry documents. */
  message: { bytesMax: Number.POSITIVE_INFINITY, valuesMax: 150_000 },
} as const satisfies Record<string, BodyBudget>;

/** The budget for a string of up to this many bytes, with every byte escaped, and the members around it. */
export function textBudget(textBytesMax: number): BodyBudget {
  return { bytesMax: 6 * textBytesMax + bodyBudgets.small.bytesMax, valuesMax: bodyBudgets.small.valuesMax };
}
