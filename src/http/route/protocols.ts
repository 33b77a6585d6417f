/** What a route sends or accepts other than plain JSON. */
export type Protocol =
  /** The contents of a file: ranges, validators, any media type. */
  | 'bytes'
  /** Server-Sent Events. */
  | 'events'
  /** The text format of Prometheus. */
  | 'metrics'
  /** A table of comma-separated values. */
  | 'csv'
  /** A ZIP archive that is written while it is sent. */
  | 'archive'
  /** JSON or events, whichever the client accepts. */
  | 'json-or-events'
  /** The JSON of one resource, with an entity tag. */
  | 'tagged'
  /** The same, and 304 for a client that has the current state. */
  | 'cached'
  /** The same, and the request may be conditional on the tag. */
  | 'conditional';
