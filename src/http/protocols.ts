/** What a route sends or takes beyond JSON. */
export type Protocol =
  /** The contents of a file: ranges, validators, any media type. */
  | 'bytes'
  /** Server-Sent Events. */
  | 'events'
  /** The text format of Prometheus. */
  | 'metrics'
  /** JSON, or events, as the client accepts. */
  | 'json-or-events'
  /** JSON of one resource with an entity tag. */
  | 'tagged'
  /** The same, and 304 for a client that has it. */
  | 'cached'
  /** The same, and the request may depend on the tag. */
  | 'conditional';
