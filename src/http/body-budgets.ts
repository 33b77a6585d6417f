/** How large the body of a request may be, as it comes and with its encoding undone, and how many values it may hold. */
export type BodyBudget = { readonly bytesMax: number; readonly valuesMax: number };

const kib = 1024;

/**
 * What a route says of its bodies. Unless it says otherwise: `small` for routes that need no credential or only a key,
 * and for those without a body; `plain` for the rest. `QUARRY_BODY_BYTES_MAX` bounds them all.
 */
export const bodyBudgets = {
  small: { bytesMax: 16 * kib, valuesMax: 500 },
  plain: { bytesMax: 64 * kib, valuesMax: 2_000 },
  /** Free maps: three bytes for each of the 256 KiB that are kept, when all of it is escaped. */
  map: { bytesMax: 1024 * kib, valuesMax: 150_000 },
  /** Graphs and access lists. */
  graph: { bytesMax: 4 * 1024 * kib, valuesMax: 150_000 },
  /** Documents and pictures in base64, as large as the setting says. */
  document: { bytesMax: Number.POSITIVE_INFINITY, valuesMax: 150_000 },
} as const satisfies Record<string, BodyBudget>;

/** A string of up to so many bytes, when every byte of it is escaped, and the members around it. */
export function textBudget(textBytesMax: number): BodyBudget {
  return { bytesMax: 6 * textBytesMax + bodyBudgets.small.bytesMax, valuesMax: bodyBudgets.small.valuesMax };
}
