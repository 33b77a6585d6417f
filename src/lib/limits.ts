/** Limits that are not settings, each named with its unit. Limits that an operator may change are in config.ts. */
export const limits = {
  pageSizeDefault: 25,
  pageSizeMax: 100,
  journalPageSizeDefault: 50,
  integerMax: 2_147_483_647,
  /** An idle connection is closed after this time. */
  requestTimeoutMs: 120_000,
  /**
   * Part of the ten seconds that a shutdown may take: requests and jobs drain concurrently, then the database stops.
   */
  drainTimeoutMs: 7_000,
  jobStopTimeoutMs: 5_000,
  /**
   * For each task, the number of this process's jobs that may concurrently wait for other hosts, in total and per
   * app.
   */
  jobWaits: {
    advance_run: { jobsMax: 4_000, jobsOfAppMax: 1_000 },
    apply_syncs: { jobsMax: 256, jobsOfAppMax: 32 },
    crawl: { jobsMax: 256, jobsOfAppMax: 64 },
    deliver_webhook: { jobsMax: 512, jobsOfAppMax: 64 },
    embed_documents: { jobsMax: 256, jobsOfAppMax: 32 },
    ingest: { jobsMax: 256, jobsOfAppMax: 32 },
    learn_sources: { jobsMax: 10_000, jobsOfAppMax: 1 },
    match_event: { jobsMax: 4_000, jobsOfAppMax: 1_000 },
    structure_extraction: { jobsMax: 256, jobsOfAppMax: 32 },
  },
  /** Memory of a process for fetched pages until a parser has read them. One page may exceed it. */
  crawlBodyBytesMax: 64 * 1024 * 1024,
  readinessTimeoutMs: 2_000,
  /** The requests of one address that a process handles in addition to as many as all of its event streams. */
  requestsBesideStreams: 1_000,
  /** Further requests on a connection are not read until one has its response. */
  requestsOfConnectionInProgressMax: 16,
  /** A connection is closed with the response to this request. Proxies open another one. */
  requestsOfConnectionMax: 1_000,
  /** A request must be complete within this time, including uploads. */
  uploadTimeoutMs: 4 * 60 * 60 * 1_000,
  /** After this time, a body must arrive at the rate below. */
  bodyGraceMs: 10_000,
  bodyBytesPerSecondMin: 64 * 1024,
  /** How long an image upload waits for its width and height, once a parser process is ready. */
  imageSizeTimeoutMs: 5_000,
  /** The largest file that a small picture is created from. */
  pictureSourceBytesMax: 32 * 1024 * 1024,
  /**
   * The number of pictures of one app created at the same time; the same number is reserved for other apps. Each holds its
   * file in memory.
   */
  picturesOfAppMax: 2,
  /** A larger picture is sent but not cached. */
  pictureCachedBytesMax: 4 * 1024 * 1024,
  pictureDaysKept: 30,
  uploadLinkSecondsDefault: 3_600,
  uploadLinkSecondsMax: 24 * 3_600,
  keyDaysMax: 3_650,
  nameCharactersMax: 500,
  urlCharactersMax: 8_192,
  /** The headers of a request, including its path. */
  headerBytesMax: 64 * 1024,
  virtualPathCharactersMax: 1_000,
  configBytesMax: 64 * 1024 * 1024,
  configTextBytesMax: 256 * 1024,
  metadataBytesMax: 262_144,
  /** The payload of an event or a run, and any output of a node. */
  payloadBytesMax: 262_144,
  automationTextCharactersMax: 262_144,
  approvalQuestionCharactersMax: 10_000,
  approvalFormBytesMax: 65_536,
  approvalAnswerBytesMax: 65_536,
  /** Users, and teams, that one approval names. */
  approvalPeopleMax: 100,
  approvalLinksMax: 20,
  aclGrantsMax: 1_000,
  jsonDepthMax: 100,
  /** The number of values in any validated JSON. Each route has a lower limit for its body. */
  jsonValuesMax: 1_000_000,
  /** Members of all objects in the JSON of a request. */
  jsonMembersMax: 40_000,
  /** Bytes of a JSON body without its long strings, which are read in pieces. The rest is parsed in one step. */
  jsonShortBytesMax: 8 * 1024 * 1024,
  /** The largest response that is stored for retries. */
  idempotentResponseBytesMax: 4 * 1024 * 1024,
  /** 10 MB as defined by the specification; exactly this many bytes are accepted. */
  documentExtractionBytesMax: 10 * 1024 * 1024,
} as const;
