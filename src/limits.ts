/** Bounds that are not settings, each named with its unit. What an operator may change stands in config.ts. */
export const limits = {
  pageSizeDefault: 25,
  pageSizeMax: 100,
  journalPageSizeDefault: 50,
  integerMax: 2_147_483_647,
  /** A connection on which nothing has moved for this long is ended. */
  requestTimeoutMs: 120_000,
  /** Of the ten seconds that a stop may take: requests and jobs drain side by side, then the database ends. */
  drainTimeoutMs: 7_000,
  jobStopTimeoutMs: 5_000,
  /** By task: jobs of one process that wait outside at the same time, for answers of other hosts, and those of one app. */
  jobWaits: {
    advance_run: { jobsMax: 4_000, jobsOfAppMax: 1_000 },
    crawl: { jobsMax: 256, jobsOfAppMax: 64 },
    embed_documents: { jobsMax: 256, jobsOfAppMax: 1 },
    ingest: { jobsMax: 256, jobsOfAppMax: 32 },
  },
  readinessTimeoutMs: 2_000,
  /** A request has to be there whole by then, however large an upload it is. */
  uploadTimeoutMs: 4 * 60 * 60 * 1_000,
  /** From then on, a body has to come at the pace below. */
  bodyGraceMs: 10_000,
  bodyBytesPerSecondMin: 64 * 1024,
  /** An upload of an image waits no longer than this for its width and height. */
  imageSizeTimeoutMs: 5_000,
  uploadLinkSecondsDefault: 3_600,
  uploadLinkSecondsMax: 24 * 3_600,
  nameCharactersMax: 500,
  urlCharactersMax: 8_192,
  /** Of a request, its path included. */
  headerBytesMax: 64 * 1024,
  virtualPathCharactersMax: 1_000,
  configBytesMax: 64 * 1024 * 1024,
  metadataBytesMax: 262_144,
  aclGrantsMax: 1_000,
  jsonDepthMax: 100,
  /** Values of any JSON that is checked; each route bounds its bodies more closely. */
  jsonValuesMax: 1_000_000,
  /** 10 MB as the specification counts it; exactly this many bytes are still accepted. */
  documentExtractionBytesMax: 10 * 1024 * 1024,
} as const;
