import { availableParallelism } from 'node:os';
import { isAbsolute } from 'node:path';
import * as forms from './forms.ts';
import { isLoopback } from './loopback.ts';
import { modelSettings } from './models.ts';
import {
  boolean,
  ConfigError,
  countOrAuto,
  integer,
  isWeakSecret,
  list,
  oneOf,
  optionalInteger,
  path,
  quota,
  rate,
  ratio,
  type Setting,
  secretText,
  stemLanguages,
  text,
  url,
} from './values.ts';
import { webSettings } from './web.ts';

export { ConfigError };

/**
 * Every setting: its environment variable, default, parser and description. Nothing else reads the environment.
 * docs/configuration.md lists the same names, which a test checks.
 */
const settings = {
  host: text('HOST', '127.0.0.1', 'Address to listen on. A public one needs QUARRY_SECRET.', forms.host),
  port: integer('PORT', 8080, { min: 0, max: 65_535 }, 'Port to listen on; 0 picks a free port.'),
  role: oneOf(
    'QUARRY_ROLE',
    'all',
    ['all', 'http', 'worker'],
    'What the process does: serves requests, runs background jobs, or both. `quarry serve --only` overrides it.',
  ),
  processes: countOrAuto(
    'QUARRY_PROCESSES',
    { min: 1, max: 64 },
    'Processes that serve requests on this machine; auto: one up to two cores, otherwise one per core.',
  ),
  workerPort: integer(
    'QUARRY_WORKER_PORT',
    8081,
    { min: 0, max: 65_535 },
    'Port of a process with role worker, only for health and metrics; 0 picks a free port.',
  ),
  publicUrl: url('QUARRY_PUBLIC_URL', undefined, 'Base URL under which clients reach the server, used in links.'),
  contentOrigin: url(
    'QUARRY_CONTENT_ORIGIN',
    undefined,
    'Second origin of this server that serves only the contents of files.',
  ),
  dataDir: path('QUARRY_DATA_DIR', './data', 'Directory of the embedded database, blobs, secret and credentials.'),
  databaseUrl: secretText(
    'DATABASE_URL',
    'URL of an external PostgreSQL 15 or newer. Unset: the embedded one.',
    forms.postgresUrl,
  ),
  databaseDirectUrl: secretText(
    'DATABASE_DIRECT_URL',
    'URL of the database without a transaction pooler, for LISTEN and locks.',
    forms.postgresUrl,
  ),
  databaseReplicaUrl: secretText(
    'DATABASE_REPLICA_URL',
    'URL of a streaming replica for searches and lists, used while it is up to date.',
    forms.postgresUrl,
  ),
  cells: secretText(
    'QUARRY_CELLS',
    'Further databases, each with apps of its own: JSON, or file:PATH. DATABASE_URL is then the directory.',
  ),
  databasePoolSize: integer('QUARRY_DB_POOL', 10, { min: 2, max: 500 }, 'Database connections for requests.'),
  databaseTimeoutSeconds: integer(
    'QUARRY_DB_TIMEOUT_SECONDS',
    10,
    { min: 1, max: 300 },
    'How long PostgreSQL may be silent before it counts as unresponsive.',
  ),
  prepare: oneOf(
    'QUARRY_PREPARE',
    'on',
    ['on', 'off'],
    'Whether to use prepared statements; off behind a transaction pooler that does not support them.',
  ),
  secret: secretText('QUARRY_SECRET', 'Root secret, at least 32 characters. Generated for the embedded database.'),
  secretPrevious: secretText('QUARRY_SECRET_PREVIOUS', 'The root secret before rotation, still accepted.'),
  logLevel: oneOf(
    'QUARRY_LOG_LEVEL',
    'info',
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    'Lowest log level that is written.',
  ),
  corsOrigins: list(
    'QUARRY_CORS_ORIGINS',
    ['*'],
    'Comma-separated origins that browsers may call from; * for any.',
    forms.origin,
  ),
  mcpOauth: boolean(
    'QUARRY_MCP_OAUTH',
    false,
    'Let assistants sign users in to the MCP endpoint by OAuth, with this server as the authorization server.',
  ),
  trustProxy: list(
    'QUARRY_TRUST_PROXY',
    [],
    'Addresses or CIDRs of proxies whose X-Forwarded-* headers are trusted.',
    forms.proxy,
  ),
  bodyBytesMax: integer(
    'QUARRY_BODY_BYTES_MAX',
    48 * 1024 * 1024,
    { min: 1024, max: 512 * 1024 * 1024 },
    'Largest JSON request body in bytes; base64 needs 4/3 of the file.',
  ),
  bodyMemoryMb: integer(
    'QUARRY_BODY_MEMORY_MB',
    256,
    { min: 1, max: 1_048_576 },
    'Memory for all request bodies in progress in this process, in MiB.',
  ),
  uploadBytesMax: integer(
    'QUARRY_UPLOAD_BYTES_MAX',
    1024 * 1024 * 1024,
    { min: 1, max: Number.MAX_SAFE_INTEGER },
    'Largest streamed upload in bytes.',
  ),
  resumableBytesMax: integer(
    'QUARRY_RESUMABLE_BYTES_MAX',
    16 * 1024 * 1024 * 1024,
    { min: 1, max: Number.MAX_SAFE_INTEGER },
    'Largest resumable upload in bytes.',
  ),
  unfinishedUploadsMax: integer(
    'QUARRY_UNFINISHED_UPLOADS',
    100,
    { min: 1, max: 100_000 },
    'Unfinished resumable uploads of an app, and of each of its sandboxes.',
  ),
  uploadHours: integer(
    'QUARRY_UPLOAD_HOURS',
    24,
    { min: 1, max: 720 },
    'Hours after which an unfinished resumable upload is deleted.',
  ),
  pictureCacheMb: integer(
    'QUARRY_PICTURE_CACHE_MB',
    64,
    { min: 0, max: 65_536 },
    'Small pictures that are cached for one app, in MiB; 0 for none.',
  ),
  kvKeyBytesMax: integer('QUARRY_KV_KEY_BYTES_MAX', 1024, { min: 1, max: 2048 }, 'Longest key of an entry in bytes.'),
  kvValueBytesMax: integer(
    'QUARRY_KV_VALUE_BYTES_MAX',
    1024 * 1024,
    { min: 1, max: 64 * 1024 * 1024 },
    'Longest value of an entry in bytes.',
  ),
  kvUserBytesMax: integer(
    'QUARRY_KV_USER_BYTES_MAX',
    64 * 1024 * 1024,
    { min: 1, max: 1024 * 1024 * 1024 },
    'Total size of the keys and values that one user may store, in bytes.',
  ),
  parseWorkers: integer(
    'QUARRY_PARSE_WORKERS',
    Math.max(1, Math.min(8, availableParallelism())),
    { min: 1, max: 64 },
    'Documents of one app parsed concurrently, each in a child process; the same number is reserved for other apps.',
  ),
  parseNetwork: oneOf(
    'QUARRY_PARSE_NETWORK',
    // Other systems have no network namespaces.
    process.platform === 'linux' ? 'isolated' : 'shared',
    ['isolated', 'shared'],
    "`isolated`: documents are read only in processes without a network. `shared`: even where the system isolates none, such as in Docker's default profile.",
  ),
  parseMemoryMb: integer(
    'QUARRY_PARSE_MEMORY_MB',
    512,
    { min: 192, max: 65_536 }, // the engines alone use 100
    'Memory limit of one parser child process in MiB.',
  ),
  parseSeconds: integer('QUARRY_PARSE_SECONDS', 30, { min: 1, max: 3_600 }, 'Time limit for parsing one document.'),
  parseJobSeconds: integer(
    'QUARRY_PARSE_JOB_SECONDS',
    600,
    { min: 1, max: 7_200 },
    'Time limit for a document that a background job parses, for a knowledge source or a link.',
  ),
  ocrLanguages: list(
    'QUARRY_OCR_LANGUAGES',
    ['eng'],
    'Languages of scans and pictures, as Tesseract names them (eng,deu,jpn), the most frequent first.',
    forms.ocrLanguage,
  ),
  ocrDataDir: text(
    'QUARRY_OCR_DATA_DIR',
    undefined,
    'Directory of <language>.traineddata files, for languages that are not installed as packages.',
  ),
  jobWorkers: integer(
    'QUARRY_JOB_WORKERS',
    10,
    { min: 0, max: 500 },
    'Background jobs of one app that this process runs concurrently; the same number is reserved for other apps. 0 leaves jobs to other processes.',
  ),
  streamSeconds: integer(
    'QUARRY_STREAM_SECONDS',
    3_600,
    { min: 1, max: 86_400 },
    'Maximum duration of an event stream, in seconds; clients then reconnect.',
  ),
  streamsMax: integer(
    'QUARRY_STREAMS_MAX',
    20_000,
    { min: 2, max: 1_000_000 },
    'Open event streams of this process; an app may open as many as are still free, so a single app gets half.',
  ),
  streamMemoryMb: integer(
    'QUARRY_STREAM_MEMORY_MB',
    64,
    { min: 1, max: 65_536 },
    'Memory for what readers of event streams have not read yet, in MiB; an app may use as much as is still free.',
  ),
  mcpWaitsMax: integer(
    'QUARRY_MCP_WAITS_MAX',
    1_000,
    { min: 2, max: 100_000 },
    'Calls of MCP tools in this process that may wait for work; an app may have as many as are still free.',
  ),
  ...webSettings,
  deletedBlobDays: integer(
    'QUARRY_DELETED_BLOB_DAYS',
    0,
    { min: 0, max: 365 },
    'Days for which the contents of deleted files are kept, for databases that are recovered to an earlier time.',
  ),
  erasuresDir: text(
    'QUARRY_ERASURES_DIR',
    undefined,
    'Directory of the register of erasures, which a restore repeats. Default: `erasures` in the data directory. Keep it outside backups.',
  ),
  backupDays: optionalInteger(
    'QUARRY_BACKUP_DAYS',
    { min: 0, max: 36_500 },
    'For how many days backups, archived WAL and snapshots are kept, for certificates of erasures.',
  ),
  blobStore: oneOf('QUARRY_BLOB_STORE', 'disk', ['disk', 's3'], 'Where file contents are kept.'),
  s3Endpoint: url('QUARRY_S3_ENDPOINT', undefined, 'Endpoint of an S3-compatible service; unset for AWS.'),
  s3Region: text('QUARRY_S3_REGION', 'us-east-1', 'S3 region.', forms.s3Name),
  s3Bucket: text('QUARRY_S3_BUCKET', undefined, 'S3 bucket; required when the blob store is s3.', forms.s3Name),
  s3PathStyle: boolean('QUARRY_S3_PATH_STYLE', false, 'Put the bucket in the path instead of the host name.'),
  s3Presign: boolean(
    'QUARRY_S3_PRESIGN',
    true,
    'Give clients signed URLs of the bucket itself. If false, downloads pass through the server.',
  ),
  s3AccessKeyId: secretText('AWS_ACCESS_KEY_ID', 'S3 access key id. Unset: the usual AWS sources.'),
  s3SecretAccessKey: secretText('AWS_SECRET_ACCESS_KEY', 'S3 secret access key. Unset: the usual AWS sources.'),
  backupKey: secretText(
    'QUARRY_BACKUP_KEY',
    'Encrypts backups in a bucket: 32 characters or more, from `openssl rand -hex 32`. Without it they cannot be read.',
  ),
  backupS3Endpoint: url(
    'QUARRY_BACKUP_S3_ENDPOINT',
    undefined,
    'For backups: an endpoint to use instead of QUARRY_S3_ENDPOINT.',
  ),
  backupS3Region: text(
    'QUARRY_BACKUP_S3_REGION',
    undefined,
    'For backups: a region to use instead of QUARRY_S3_REGION.',
    forms.s3Name,
  ),
  backupS3AccessKeyId: secretText('QUARRY_BACKUP_S3_ACCESS_KEY_ID', 'For backups: other credentials.'),
  backupS3SecretAccessKey: secretText('QUARRY_BACKUP_S3_SECRET_ACCESS_KEY', 'For backups: other credentials.'),
  s3SessionToken: secretText('AWS_SESSION_TOKEN', 'S3 session token, if the credentials are temporary.'),
  searchLanguage: oneOf(
    'QUARRY_SEARCH_LANGUAGE',
    'english',
    stemLanguages,
    'Language of texts whose language is unknown, in sources that set none.',
  ),
  searchCacheMb: integer(
    'QUARRY_SEARCH_CACHE_MB',
    256,
    { min: 1, max: 1_048_576 },
    'Memory for caching the search index, in MiB.',
  ),
  learnMemoryMb: integer(
    'QUARRY_LEARN_MEMORY_MB',
    1024,
    { min: 0, max: 65_536 },
    'Memory limit of the child process that learns which words of a source belong together, in MiB; 0 disables learning.',
  ),
  ...modelSettings,
  rateReads: rate('QUARRY_RATE_READS', 6_000_000, 'reads'),
  rateWrites: rate('QUARRY_RATE_WRITES', 6_000_000, 'changes'),
  rateUploads: rate('QUARRY_RATE_UPLOADS', 600_000, 'uploads'),
  rateExtractions: rate('QUARRY_RATE_EXTRACTIONS', 120_000, 'extractions and ingestions'),
  rateSearch: rate('QUARRY_RATE_SEARCH', 600_000, 'searches'),
  rateInvocations: rate('QUARRY_RATE_INVOCATIONS', 600_000, 'invocations and events'),
  quotaFileBytes: quota('QUARRY_QUOTA_FILE_BYTES', 'Bytes of files and of learned search models'),
  quotaDocuments: quota('QUARRY_QUOTA_DOCUMENTS', 'Knowledge documents'),
  quotaPagesPerDay: quota('QUARRY_QUOTA_PAGES_PER_DAY', 'Pages extracted or pulled per day (UTC)'),
  quotaTokensPerDay: quota('QUARRY_QUOTA_TOKENS_PER_DAY', 'Tokens of the language model per day (UTC)'),
  idempotencyRecordsMax: integer(
    'QUARRY_IDEMPOTENCY_RECORDS_MAX',
    100_000,
    { min: 1, max: 100_000_000 },
    'Requests with an Idempotency-Key of an app, and of each of its sandboxes, in 24 hours.',
  ),
  idempotencyMb: integer(
    'QUARRY_IDEMPOTENCY_MB',
    256,
    { min: 1, max: 1_048_576 },
    'MiB of stored responses to requests with an Idempotency-Key, of an app and of each of its sandboxes.',
  ),
  quotaSandboxes: integer(
    'QUARRY_QUOTA_SANDBOXES',
    0,
    { min: 0, max: 1_000_000 },
    'Sandboxes that an app may have; 0 for no limit.',
  ),
  metricsPort: optionalInteger(
    'QUARRY_METRICS_PORT',
    { min: 0, max: 65_535 },
    'Separate port for /metrics, on the same address. Unset: the main port.',
  ),
  metricsToken: secretText(
    'QUARRY_METRICS_TOKEN',
    'Bearer token required by /metrics. Unset: no token is required.',
    forms.headerToken,
  ),
  otlpEndpoint: url(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    undefined,
    'Base URL of an OpenTelemetry collector (OTLP over HTTP) for traces. Unset: no traces.',
  ),
  otlpHeaders: secretText(
    'OTEL_EXPORTER_OTLP_HEADERS',
    'Headers for the collector: name=value pairs, separated by commas, values percent-encoded.',
  ),
  otlpServiceName: text('OTEL_SERVICE_NAME', 'quarry', 'Name of this service in traces.'),
  otlpSampleRatio: ratio('OTEL_TRACES_SAMPLER_ARG', 1, 'Share of traces that is recorded, from 0 to 1.'),
  audit: oneOf(
    'QUARRY_AUDIT',
    'changes',
    ['off', 'changes', 'all'],
    'What the audit log records: changes, or all, which includes changes of key-value entries.',
  ),
  auditDays: integer('QUARRY_AUDIT_DAYS', 90, { min: 1, max: 36_500 }, 'Retention of the audit log, in days.'),
  apiUrl: url('QUARRY_API_URL', undefined, 'For commands that call a server: its base URL.'),
  apiKey: secretText('QUARRY_API_KEY', 'For commands that call a server: an API key.', forms.headerToken),
  apiToken: secretText('QUARRY_TOKEN', 'For commands that call a server: a bearer token.', forms.headerToken),
  apiApp: text('QUARRY_APP', undefined, 'For commands that call a server: the app that a developer token acts in.'),
  profile: text(
    'QUARRY_PROFILE',
    undefined,
    'For commands that call a server: the file that `quarry login` writes. Unset: ~/.config/quarry/profile.json.',
  ),
  apiSandbox: text('QUARRY_SANDBOX', undefined, 'For commands that call a server: the sandbox to act in.'),
} as const;

type Settings = typeof settings;
/** The effective settings, read once at start. */
export type Config = { [K in keyof Settings]: Settings[K] extends Setting<infer T> ? T : never };

/**
 * Reads all settings. Throws one ConfigError that lists every error.
 * @param given values from the command line by variable name; they override the environment
 */
export function readConfig(
  environment: Record<string, string | undefined> = process.env,
  given: Record<string, string> = {},
): Config {
  const env = { ...environment, ...given };
  const problems: string[] = [];
  const config: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries<Setting<unknown>>(settings)) {
    const raw = env[setting.variable];
    if (raw === undefined || raw.trim() === '') {
      config[key] = setting.fallback;
      continue;
    }
    const read = setting.read(raw.trim());
    if ('problem' in read) problems.push(`${setting.variable} ${read.problem}`);
    else config[key] = read.value;
  }
  if (problems.length === 0) problems.push(...checkTogether(config as Config));
  if (problems.length > 0) throw new ConfigError(problems);
  return config as Config;
}

/** A variable of the environment that is not a setting, for files that take a secret from it. */
export function readVariable(name: string, env: Record<string, string | undefined> = process.env): string | undefined {
  return env[name];
}

/** Whether the environment names the data directory, whatever directory a command runs in. */
export function choosesDataDir(): boolean {
  return isAbsolute(process.env[settings.dataDir.variable]?.trim() ?? '');
}

/** Every setting's variable. */
export const settingNames: readonly string[] = Object.values<Setting<unknown>>(settings).map((each) => each.variable);

/** Variables that look like settings but are not, usually because of a typo. They cause a warning at start. */
export function unknownSettings(env: Record<string, string | undefined> = process.env): string[] {
  return Object.keys(env).filter((name) => name.startsWith('QUARRY_') && !settingNames.includes(name));
}

/** Rules that involve more than one setting. */
function checkTogether(config: Config): string[] {
  const problems: string[] = [];
  if (config.secret !== undefined && isWeakSecret(config.secret))
    problems.push('QUARRY_SECRET is too short or a well-known value: use `openssl rand -hex 32`');
  if (config.backupKey !== undefined && isWeakSecret(config.backupKey))
    problems.push('QUARRY_BACKUP_KEY is too short or a well-known value: use `openssl rand -hex 32`');
  if (config.databaseUrl !== undefined && config.secret === undefined)
    problems.push(
      'QUARRY_SECRET is required with DATABASE_URL, the same for every process: use `openssl rand -hex 32`',
    );
  if (!isLoopback(config.host) && config.secret === undefined)
    problems.push(
      `QUARRY_SECRET is required to listen on the public address ${config.host}: use \`openssl rand -hex 32\`, or the contents of the file "secret" in the data directory if this server ran before`,
    );
  if (config.bodyMemoryMb * 1024 * 1024 < config.bodyBytesMax)
    problems.push('QUARRY_BODY_MEMORY_MB must be large enough for one body of QUARRY_BODY_BYTES_MAX');
  if (config.contentOrigin !== undefined && new URL(config.contentOrigin).origin !== config.contentOrigin)
    problems.push('QUARRY_CONTENT_ORIGIN must be an origin, such as https://files.example.com, without a path');
  if (config.contentOrigin !== undefined && config.publicUrl === undefined)
    problems.push('QUARRY_CONTENT_ORIGIN requires QUARRY_PUBLIC_URL');
  else if (
    config.contentOrigin !== undefined &&
    new URL(config.contentOrigin).host === new URL(config.publicUrl ?? '').host
  )
    problems.push('QUARRY_CONTENT_ORIGIN must have a different host from QUARRY_PUBLIC_URL');
  if (config.cells !== undefined && config.databaseUrl === undefined)
    problems.push('QUARRY_CELLS requires DATABASE_URL, which names the directory');
  if ((config.databaseDirectUrl ?? config.databaseReplicaUrl) !== undefined && config.databaseUrl === undefined)
    problems.push('DATABASE_DIRECT_URL and DATABASE_REPLICA_URL require DATABASE_URL');
  if (config.role !== 'all' && config.databaseUrl === undefined)
    problems.push(
      `QUARRY_ROLE ${config.role} requires DATABASE_URL: only one process can use the embedded database, so it must have role all`,
    );
  if (config.role === 'worker' && config.publicUrl === undefined)
    problems.push(
      'QUARRY_PUBLIC_URL is required for a worker: links created by background jobs must lead to the processes that serve requests',
    );
  if (config.role === 'worker' && config.jobWorkers === 0)
    problems.push('QUARRY_JOB_WORKERS must not be 0 for a worker, which would do nothing');
  if (config.blobStore === 's3' && config.s3Bucket === undefined)
    problems.push('QUARRY_S3_BUCKET is required when QUARRY_BLOB_STORE is s3');
  if (config.embedder !== 'lexical' && config.embedModel === undefined)
    problems.push(`QUARRY_EMBED_MODEL is required when QUARRY_EMBEDDER is ${config.embedder}`);
  if (config.embedder === 'openai' && config.embedUrl === undefined)
    problems.push('QUARRY_EMBED_URL is required when QUARRY_EMBEDDER is openai');
  if ((config.llmUrl === undefined) !== (config.llmModel === undefined))
    problems.push('QUARRY_LLM_URL and QUARRY_LLM_MODEL must be set together');
  if (config.embedModelDimensions !== undefined && config.embedModelDimensions < config.embedDimensions)
    problems.push('QUARRY_EMBED_MODEL_DIMENSIONS must not be less than QUARRY_EMBED_DIMENSIONS');
  return problems;
}

/** Whether a process with these settings runs background jobs. */
export function runsJobs({ role, jobWorkers }: Pick<Config, 'role' | 'jobWorkers'>): boolean {
  return role !== 'http' && jobWorkers > 0;
}

type SettingView = {
  variable: string;
  value: string;
  source: 'default' | 'environment';
  description: string;
};

/** The effective values for display, with secrets redacted. */
export function describeConfig(config: Config, env: Record<string, string | undefined> = process.env): SettingView[] {
  return Object.entries<Setting<unknown>>(settings).map(([key, setting]) => {
    const value = config[key as keyof Config];
    const shown = Array.isArray(value) ? value.join(',') : String(value ?? '');
    return {
      variable: setting.variable,
      value: setting.secret && shown !== '' ? '[redacted]' : shown,
      source: env[setting.variable]?.trim() ? 'environment' : 'default',
      description: setting.description,
    };
  });
}
