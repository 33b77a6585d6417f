import { Cron } from 'croner';
import { isStemLanguage, type StemLanguage } from '../../content/terms.ts';
import { AppError, type FieldError } from '../../errors.ts';
import { limits } from '../../limits.ts';

export type SourceKind = {
  type: string;
  label: string;
  description: string;
  /** JSON Schema of the payload; further members are kept as given. */
  payloadSchema: Record<string, unknown>;
  /** Payload members without which a pull cannot run; undefined: the kind knows no pull. */
  pullNeeds: readonly string[] | undefined;
  /** Whether bytes can be pushed. */
  pushable: boolean;
};

const schedule = { type: 'string', description: 'Cron expression (UTC) of automatic pulls.' };
const language = { type: 'string', description: 'Language that words are stemmed in, such as german.' };
const url = { type: 'string', format: 'uri', description: 'http or https.' };
const paths = (words: string) => ({ type: 'array', items: { type: 'string' }, maxItems: 100, description: words });

/** What clients may create. */
export const creatableKinds: readonly SourceKind[] = [
  {
    type: 'knowledge/documents',
    label: 'Documents',
    description: 'Documents that are pushed, as text, bytes or uploaded files.',
    payloadSchema: { type: 'object', properties: { language } },
    pullNeeds: undefined,
    pushable: true,
  },
  {
    type: 'scrape/site',
    label: 'Web site',
    description: 'The pages of a site, from a start page on; a pull reads it again.',
    payloadSchema: {
      type: 'object',
      properties: {
        url,
        max_pages: { type: 'integer', minimum: 1, maximum: limits.integerMax, default: 100 },
        include_paths: paths('Only paths that match one of these patterns (* stands for anything).'),
        exclude_paths: paths('No paths that match one of these patterns.'),
        max_depth: { type: 'integer', minimum: 0, maximum: limits.integerMax },
        allow_subdomains: { type: 'boolean' },
        schedule,
        language,
      },
      required: ['url'],
    },
    pullNeeds: ['url'],
    pushable: false,
  },
  {
    type: 'web/link',
    label: 'Web page',
    description: 'One page or document on the web; a pull fetches it again.',
    payloadSchema: { type: 'object', properties: { url, schedule, language }, required: ['url'] },
    pullNeeds: ['url'],
    pushable: false,
  },
  {
    type: 'file/document',
    label: 'File',
    description: 'One uploaded file; a pull reads it again.',
    payloadSchema: {
      type: 'object',
      properties: { file: { type: 'string', description: 'fil_… (or as file_id)' }, schedule, language },
      required: ['file'],
    },
    pullNeeds: ['file'],
    pushable: false,
  },
];

/** Kinds that installations make. */
export const serverKinds = ['webhook/inbound', 'thread/messages'] as const;

export function findCreatableKind(type: string): SourceKind | undefined {
  return creatableKinds.find((kind) => kind.type === type);
}

export type Payload = Record<string, unknown>;

/** The file that a file/document payload names, under either name. */
export function payloadFile(payload: Payload | null): unknown {
  return payload?.file ?? payload?.file_id;
}

/** What a pull of this kind still misses in the payload. */
export function missingForPull(kind: SourceKind, payload: Payload | null): string[] {
  return (kind.pullNeeds ?? []).filter(
    (member) => (member === 'file' ? payloadFile(payload) : payload?.[member]) === undefined,
  );
}

export type UrlCheck = (url: string) => string | undefined;

/** 422 on each known member of the payload that is wrong; unknown ones pass. `checkUrl` says what is wrong with a URL. */
export function checkPayload(type: string, payload: Payload, checkUrl: UrlCheck): void {
  const fields: FieldError[] = [];
  const wrong = (member: string, message: string) => fields.push({ field: `payload.${member}`, message });
  if (Buffer.byteLength(JSON.stringify(payload)) > limits.metadataBytesMax)
    fields.push({ field: 'payload', message: `is larger than ${limits.metadataBytesMax} bytes` });
  const { schedule: cron } = payload;
  if (cron !== undefined && cron !== null) {
    if (typeof cron !== 'string') wrong('schedule', 'must be a cron expression');
    else if (nextRun(cron, new Date(0)) === undefined) wrong('schedule', 'is not a cron expression');
  }
  if (type === 'web/link' || type === 'scrape/site') {
    const problem = payload.url === undefined ? undefined : urlProblem(payload.url, checkUrl);
    if (problem !== undefined) wrong('url', problem);
  }
  if (type === 'scrape/site') {
    for (const member of ['max_pages', 'max_depth'] as const)
      if (payload[member] !== undefined && !isInteger(payload[member], member === 'max_pages' ? 1 : 0))
        wrong(member, `must be an integer from ${member === 'max_pages' ? 1 : 0} to ${limits.integerMax}`);
    for (const member of ['include_paths', 'exclude_paths'] as const)
      if (payload[member] !== undefined && !isTextList(payload[member])) wrong(member, 'must be a list of strings');
    if (payload.allow_subdomains !== undefined && typeof payload.allow_subdomains !== 'boolean')
      wrong('allow_subdomains', 'must be true or false');
  }
  if (type === 'file/document')
    for (const member of ['file', 'file_id'] as const)
      if (payload[member] !== undefined && typeof payload[member] !== 'string') wrong(member, 'must be a file id');
  const [first] = fields;
  if (first) throw new AppError('invalid_parameters', `${first.field}: ${first.message}`, { fields });
}

function urlProblem(value: unknown, checkUrl: UrlCheck): string | undefined {
  return typeof value === 'string' ? checkUrl(value) : 'must be a URL';
}

function isInteger(value: unknown, min: number): boolean {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= limits.integerMax;
}

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.length <= 100 && value.every((item) => typeof item === 'string');
}

/** Five to seven fields, or a name such as @daily. */
const cronPattern = /^\s*(?:@\w+|\S+(?:\s+\S+){4,6})\s*$/;

/** When a schedule is due next after this moment; undefined when it is none or never. */
export function nextRun(cron: unknown, after: Date): Date | undefined {
  // The library would take a point in time, too.
  if (typeof cron !== 'string' || !cronPattern.test(cron)) return undefined;
  try {
    return new Cron(cron, { timezone: 'UTC' }).nextRun(after) ?? undefined;
  } catch {
    return undefined;
  }
}

export function payloadLanguage(payload: Payload | null, otherwise: StemLanguage): StemLanguage {
  const named = payload?.language;
  return typeof named === 'string' && isStemLanguage(named) ? named : otherwise;
}
