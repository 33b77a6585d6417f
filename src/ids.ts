import { randomBytes } from 'node:crypto';

/**
 * Every kind of resource: the prefix that answers carry first, then the aliases that input may carry.
 * The suffix alone identifies the row (a UUIDv7 in 22 base62 characters, `0-9A-Za-z`, so ids sort by creation time).
 */
export const idPrefixes = {
  agent: ['agt', 'agi'],
  app: ['dap', 'app'],
  automation: ['aut', 'auto'],
  automationRun: ['atr', 'arun'],
  chunk: ['cim'],
  command: ['cmd'],
  config: ['cfg'],
  configVersion: ['cfv'],
  developer: ['dva'],
  document: ['cdo'],
  event: ['evt'],
  extraction: ['ext'],
  extractionOutput: ['exo'],
  file: ['fil'],
  ingestion: ['cig'],
  installation: ['cin', 'ins'],
  journal: ['wde'],
  journalEntry: ['wdr'],
  key: ['dak'],
  membership: ['tmb'],
  message: ['msg'],
  org: ['org'],
  sandbox: ['sbx', 'dsb'],
  source: ['cso', 'ksrc'],
  team: ['tem', 'team', 'tea'],
  thread: ['thr'],
  timer: ['tmr'],
  token: ['tok'],
  user: ['usr', 'user'],
} as const satisfies Record<string, readonly [string, ...string[]]>;

export type IdKind = keyof typeof idPrefixes;

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const suffixLength = 22;
const uuidMax = (1n << 128n) - 1n;

/** The row's own key for a new resource: a UUIDv7 (RFC 9562), ascending within this process. */
export function newUuid(): string {
  const now = Date.now();
  if (now > lastMs) {
    lastMs = now;
    sequence = randomBytes(2).readUInt16BE() & 0x3ff;
  } else if (sequence < 0xfff) {
    sequence += 1;
  } else {
    lastMs += 1;
    sequence = 0;
  }
  const time = lastMs.toString(16).padStart(12, '0');
  const random = randomBytes(8);
  random[0] = ((random[0] ?? 0) & 0x3f) | 0x80;
  const low = random.toString('hex');
  const high = (0x7000 | sequence).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-${high}-${low.slice(0, 4)}-${low.slice(4)}`;
}

let lastMs = 0;
let sequence = 0;

/** `fil_…` from the row's uuid. `prefix` names another spelling of the same kind where a surface has its own. */
export function formatId<K extends IdKind>(
  kind: K,
  uuid: string,
  prefix: (typeof idPrefixes)[K][number] = idPrefixes[kind][0],
): string {
  let value = BigInt(`0x${uuid.replaceAll('-', '')}`);
  let suffix = '';
  for (let i = 0; i < suffixLength; i++) {
    suffix = alphabet.charAt(Number(value % 62n)) + suffix;
    value /= 62n;
  }
  return `${prefix}_${suffix}`;
}

/** The uuid that a client's id names, or undefined when it has the wrong type or shape. Every alias is taken. */
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

/** The 16 bytes of a uuid. */
export function uuidBytes(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex');
}

/** The uuid of 16 bytes. */
export function formatUuidBytes(bytes: Uint8Array): string {
  return dashed(Buffer.from(bytes).toString('hex'));
}

function dashed(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
