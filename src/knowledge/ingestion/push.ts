import type { Static } from 'typebox';
import type { Db } from '../../db/database.ts';
import { AppError, invalidField } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { findCreatableKind, listMissingForPull } from '../kinds/index.ts';
import type { aclSchema } from '../permissions/schema.ts';
import type { Permissions } from '../permissions/service.ts';
import type { ingestSchema, pushSchema } from '../schema.ts';
import type { SourceRow } from '../sources/store.ts';
import { readContent, requireDocumentFile } from './content.ts';
import type { NewItem } from './store.ts';

/** A pushed document, alone or in a batch, or a replacement. */
export type PushInput = Static<typeof pushSchema> & { acl?: Static<typeof aclSchema> | null | undefined };

/** A document whose content is replaced. */
export type ReplacedDocument = { id: string; title: string | null; aclId: string | null };

/** `document` is the one to be replaced. The grants of a batch are those of the whole batch. */
export async function readPush(
  permissions: Permissions,
  db: Db,
  caller: Caller,
  source: SourceRow,
  input: PushInput,
  { at = '', document, aclId }: { at?: string; document?: ReplacedDocument; aclId?: string | undefined } = {},
): Promise<NewItem> {
  const acl = input.acl == null ? aclId : await permissions.resolve(db, caller, source, input.acl);
  const readers = acl ?? (input.acl === null ? undefined : document?.aclId) ?? undefined;
  const common = {
    documentId: document?.id ?? null,
    aclId: acl ?? null,
    hasAcl: acl !== undefined || input.acl === null,
    title: input.title ?? document?.title ?? null,
    metadata: input.metadata ?? null,
    dedupe: input.dedupe ?? false,
  };
  const none = { content: null, isText: false, contentType: null, filename: null, fileId: null };
  if (input.content)
    return { ...common, ...none, ...(await readContent(input.content, `${at}content.data`, caller.appId)) };
  // The document keeps its text.
  if (input.file === undefined && document) return { ...common, ...none, title: input.title ?? null };
  const field = `${at}file`;
  const fileId = await requireDocumentFile(db, caller, input.file ?? '', field);
  if (readers !== undefined) await permissions.requireNoMoreReaders(db, source.appId, fileId, readers, field);
  return { ...common, ...none, fileId };
}

type Mode = 'content' | 'file' | 'pull';

/** Exactly one of content, file and pull; `pull: false` counts as absent. */
export function readMode(input: Static<typeof ingestSchema>): Mode {
  const modes: Mode[] = [];
  if (input.content !== undefined) modes.push('content');
  if (input.file !== undefined) modes.push('file');
  if (input.pull === true) modes.push('pull');
  const [mode] = modes;
  if (mode === undefined || modes.length > 1)
    throw exactlyOneError(
      mode === undefined ? ['content', 'file', 'pull'] : modes,
      'exactly one of content, file and pull is required',
    );
  return mode;
}

export function checkMode(source: SourceRow, mode: Mode, input: Static<typeof ingestSchema>): void {
  const kind = findCreatableKind(source.type);
  if (mode !== 'pull') {
    if (!kind?.pushable) throw invalidField(mode, `cannot be pushed into a source of type ${source.type}`);
    return;
  }
  if (input.dedupe === true) throw invalidField('dedupe', 'is for pushed content only');
  if (input.acl !== undefined) throw invalidField('acl', 'is for pushed content only');
  if (!kind?.pull) throw invalidField('pull', `a source of type ${source.type} has nothing to pull from`);
  const missing = listMissingForPull(kind, source.payload);
  if (missing.length > 0)
    throw invalidField('payload', `a pull requires ${missing.join(' and ')} in the source's payload`);
}

export function exactlyOneError(fields: string[], message: string): AppError {
  return new AppError('invalid_parameters', `${fields.join(', ')}: ${message}`, {
    fields: fields.map((field) => ({ field, message })),
  });
}
