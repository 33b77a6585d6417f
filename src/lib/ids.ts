import { randomBytes } from 'node:crypto';

/**
 * Every kind of resource: the prefix used in responses, then aliases accepted in input. The suffix alone identifies
 * the row (a UUIDv7 in 22 base62 characters, `0-9A-Za-z`, so ids sort by creation time).
 */
export const idPrefixes = {
  agent: ['agt', 'agi'],
  app: ['dap', 'app'],
  approval: ['apr'],
  assistant: ['asg'],
  auditEntry: ['aud'],
  automation: ['aut', 'auto'],
  automationRun: ['atr', 'arun'],
  chunk: ['cim'],
  claim: ['clm'],
  command: ['cmd'],
  config: ['cfg'],
  configVersion: ['cfv'],
  developer: ['dva'],
  document: ['cdo'],
  erasure: ['ers'],
  event: ['evt'],
  extraction: ['ext'],
  extractionOutput: ['exo'],
  file: ['fil'],
  group: ['grp'],
  ingestion: ['cig'],
  identityIssuer: ['iss'],
  installation: ['cin', 'ins'],
  job: ['job'],
  journal: ['wde'],
  journalEntry: ['wdr'],
  key: ['dak'],
  membership: ['tmb'],
  message: ['msg'],
  model: ['mdl'],
  modelAlias: ['mal'],
  modelBudget: ['mbg'],
  modelCall: ['mcl'],
  org: ['org'],
  response: ['resp'],
  sandbox: ['sbx', 'dsb'],
  source: ['cso', 'ksrc'],
  sync: ['csy'],
  team: ['tem', 'team', 'tea'],
  thread: ['thr'],
  timer: ['tmr'],
  token: ['tok'],
  upload: ['upl'],
  user: ['usr', 'user'],
  webhook: ['whk'],
  webhookDelivery: ['whd'],
} as const satisfies Record<string, readonly [string, ...string[]]>;

export type IdKind = keyof typeof idPrefixes;

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const suffixLength = 22;
const uuidMax = (1n << 128n) - 1n;

/** The uuid of a new resource: a UUIDv7 (RFC 9562), ascending within this process. */
export function newUuid(): string {
  const now = Date.now();
  if (now > lastMs) {
    lastMs = now;
    sequence = nextRandom(2).readUInt16BE() & 0x3ff;
  } else if (sequence < 0xfff) {
    sequence += 1;
  } else {
    lastMs += 1;
    sequence = 0;
  }
  const time = lastMs.toString(16).padStart(12, '0');
  const random = nextRandom(8);
  random[0] = ((random[0] ?? 0) & 0x3f) | 0x80;
  const low = random.toString('hex');
  const high = (0x7000 | sequence).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-${high}-${low.slice(0, 4)}-${low.slice(4)}`;
}

let lastMs = 0;
let sequence = 0;

/** Random bytes are read in blocks: requesting eight at a time costs more than everything else for an id. */
function nextRandom(size: number): Buffer {
  if (poolUsed + size > pool.length) {
    pool = randomBytes(4_096);
    poolUsed = 0;
  }
  poolUsed += size;
  return pool.subarray(poolUsed - size, poolUsed);
}

let pool = Buffer.alloc(0);
let poolUsed = 0;

/** Formats `fil_…` from the row's uuid. `prefix` selects an alias for endpoints that use one. */
export function formatId<K extends IdKind>(
  kind: K,
  uuid: string,
  prefix: (typeof idPrefixes)[K][number] = idPrefixes[kind][0],
): string {
  if (uuid !== last.uuid) last = { uuid, suffix: suffixOf(uuid) };
  return `${prefix}_${last.suffix}`;
}

/** The items of a list often name the same user. */
let last = { uuid: '', suffix: '' };

function suffixOf(uuid: string): string {
  // Long division of eight 16-bit words, two digits at a time, within small integers: BigInt takes four times as long,
  // and every response formats ids.
  for (let i = 0, at = 0; i < words.length; i++, at += 4) {
    if (uuid.charCodeAt(at) === dash) at += 1;
    words[i] = Number.parseInt(uuid.slice(at, at + 4), 16);
  }
  let suffix = '';
  for (let pair = 0; pair < suffixLength; pair += 2) {
    let rest = 0;
    for (let i = 0; i < words.length; i++) {
      const value = rest * 0x10000 + (words[i] ?? 0);
      words[i] = (value / digitPairs.length) | 0;
      rest = value % digitPairs.length;
    }
    suffix = digitPairs[rest] + suffix;
  }
  return suffix;
}

const dash = 0x2d;
const words = new Uint16Array(8);
const digitPairs = [...alphabet].flatMap((high) => [...alphabet].map((low) => high + low));

/** The uuid in a client's id, or undefined if its type or format is wrong. Accepts every alias. */
export function parseId(kind: IdKind, text: string): string | undefined {
  const split = text.indexOf('_');
  const prefixes: readonly string[] = idPrefixes[kind];
  if (split < 0 || !prefixes.includes(text.slice(0, split))) return undefined;
  const suffix = text.slice(split + 1);
  if (suffix.length !== suffixLength) return undefined;
  let value = 0n;
  for (const character of suffix) {
    const digit = alphabet.indexOf(character);
    if (digit < 0) return undefined;
    value = value * 62n + BigInt(digit);
  }
  if (value > uuidMax) return undefined;
  return dashed(value.toString(16).padStart(32, '0'));
}

/** The prefixes of ids under `/v1`, and the corresponding ones in the rest of the API. */
const nativePrefixes: Record<string, string> = { 'file-': 'fil_', vs_: 'cso_', vsfb_: 'cig_' };

/** Converts an id from `/v1` to the form used in the rest of the API. Returns any other text unchanged. */
export function nativeId(text: string): string {
  const [, prefix = '', suffix = ''] = /^(file-|vs_|vsfb_)([0-9A-Za-z]{22})$/.exec(text) ?? [];
  return suffix === '' ? text : `${nativePrefixes[prefix]}${suffix}`;
}

/** Whether the text could be mistaken for an id of any kind. */
export function looksLikeId(text: string): boolean {
  return /^[a-z]{2,8}_[0-9A-Za-z]{22}$/.test(text);
}

/** The 16 bytes of a uuid. */
export function uuidBytes(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex');
}

/** Formats 16 bytes as a uuid. */
export function formatUuidBytes(bytes: Uint8Array): string {
  return dashed(Buffer.from(bytes).toString('hex'));
}

function dashed(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
