/** How long work may take whose end others decide. Tests of what else happens meanwhile pass longer times. */
export type Timeouts = {
  /** One outgoing request with its redirects, unless its caller gives it another time. */
  fetchMs: number;
  /** One attempt to deliver events to a webhook. */
  deliveryMs: number;
  /** Expressions, schemas and texts that check no clock end with their process after this processor time. */
  expressionMs: number;
  schemaMs: number;
  fileMs: number;
  /** What ends with its process again rests for this time, before the next work of its automation. */
  restMs: number;
};

export const usualTimeouts: Readonly<Timeouts> = {
  ...{ fetchMs: 30_000, deliveryMs: 15_000 },
  ...{ expressionMs: 200, schemaMs: 1_000, fileMs: 5_000, restMs: 5_000 },
};
