import { AppError, type FieldError } from '../../lib/errors.ts';
import { suggestNearest } from '../../lib/nearest.ts';
import { documents } from './documents.ts';
import { fileDocument } from './file-document.ts';
import { gitRepository } from './git-repository.ts';
import type { SourceKind } from './kind.ts';
import { findProblem, type Payload, type UrlCheck } from './payload.ts';
import { s3Bucket } from './s3-bucket.ts';
import { scrapeSite } from './scrape-site.ts';
import { webFeed } from './web-feed.ts';
import { webLink } from './web-link.ts';

/** The kinds that clients may create. */
export const creatableKinds: readonly SourceKind[] = [
  documents,
  scrapeSite,
  webLink,
  webFeed,
  gitRepository,
  s3Bucket,
  fileDocument,
];

/** Kinds that installations create: pushed content fills them, so they have no payload and no pull. */
export const serverKinds = ['webhook/inbound', 'thread/messages'] as const;

export function findCreatableKind(type: string): SourceKind | undefined {
  return creatableKinds.find((kind) => kind.type === type);
}

/** The members that a pull of this kind requires and the payload lacks. */
export function listMissingForPull(kind: SourceKind, payload: Payload | null): string[] {
  const required: readonly string[] = kind.payload.required ?? [];
  const names = (member: string) => [
    member,
    ...Object.keys(kind.aliases ?? {}).filter((alias) => kind.aliases?.[alias] === member),
  ];
  return required.filter((member) => names(member).every((name) => payload?.[name] === undefined));
}

/** Members of a payload that the kind does not know, and whose names are nearly those of members that it knows. */
export function findMistypedMembers(type: string, payload: Payload | null | undefined): FieldError[] {
  const kind = findCreatableKind(type);
  if (!kind || !payload) return [];
  const known = membersOf(kind);
  return Object.keys(payload)
    .filter((member) => !known.includes(member))
    .slice(0, mistypedMax)
    .flatMap((member) => {
      const hint = suggestNearest(member, known);
      return hint === '' ? [] : [{ field: `payload.${member}`, message: `${member} is stored, but not used${hint}` }];
    });
}

const mistypedMax = 100;

function membersOf(kind: SourceKind): string[] {
  return ['schedule', ...Object.keys(kind.payload.properties), ...Object.keys(kind.aliases ?? {})];
}

/** 422 on each known member of the payload that is invalid. Unknown members are allowed. */
export function checkPayload(kind: SourceKind, payload: Payload, checkUrl: UrlCheck): void {
  const fields: FieldError[] = [];
  for (const member of new Set(membersOf(kind))) {
    if (payload[member] === undefined) continue;
    const schema = kind.payload.properties[kind.aliases?.[member] ?? member];
    const message = findProblem(member, schema, payload[member], checkUrl);
    if (message !== undefined) fields.push({ field: `payload.${member}`, message });
  }
  const [first] = fields;
  if (first) throw new AppError('invalid_parameters', `${first.field}: ${first.message}`, { fields });
}
