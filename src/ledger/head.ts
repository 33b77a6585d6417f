import { formatId, parseId } from '../lib/ids.ts';
import { encodeHeader, type SegmentHeader, type SegmentKind, sha256 } from './encoding.ts';
import { keyId, TrustedKeys } from './keys.ts';
import type { SegmentRow } from './store.ts';
import type { KnownHead } from './verify.ts';

/** An exported head: the last segment of a ledger, with everything that its signature covers. */
export type ExportedHead = {
  app: string;
  sandbox: string;
  segment: number;
  kind: SegmentKind;
  sealed_at: string;
  records: number;
  last_at: string | null;
  list_digest: string;
  detail: string | null;
  previous: string;
  key_id: string;
  /** The raw Ed25519 key, 32 bytes in hex. */
  public_key: string;
  signature: string;
  digest: string;
};

export function presentHead(row: SegmentRow, publicKey: Uint8Array | undefined): ExportedHead {
  return {
    app: formatId('app', row.appId),
    sandbox: formatId('sandbox', row.sandboxId),
    segment: row.number,
    kind: row.kind,
    sealed_at: row.sealedAt,
    records: row.records,
    last_at: row.lastAt,
    list_digest: row.listDigest.toString('hex'),
    detail: row.detail,
    previous: row.previous.toString('hex'),
    key_id: row.keyId,
    public_key: Buffer.from(publicKey ?? []).toString('hex'),
    signature: row.signature.toString('hex'),
    digest: sha256(encodeHeader(row)).toString('hex'),
  };
}

export type ReadHead = KnownHead & { appId: string; sandboxId: string; publicKey: Buffer };

/** Checks an exported head by itself. Undefined if its signature does not match. */
export function readHead(head: ExportedHead): ReadHead | undefined {
  const appId = parseId('app', String(head.app));
  const sandboxId = parseId('sandbox', String(head.sandbox));
  if (appId === undefined || sandboxId === undefined) return undefined;
  const header: SegmentHeader = {
    appId,
    sandboxId,
    number: head.segment,
    kind: head.kind,
    sealedAt: head.sealed_at,
    records: head.records,
    lastAt: head.last_at,
    detail: head.detail,
    keyId: head.key_id,
    listDigest: Buffer.from(String(head.list_digest), 'hex'),
    previous: Buffer.from(String(head.previous), 'hex'),
  };
  const publicKey = Buffer.from(String(head.public_key), 'hex');
  const bytes = encodeHeader(header);
  const digest = sha256(bytes);
  if (publicKey.length !== 32 || keyId(publicKey) !== head.key_id || digest.toString('hex') !== head.digest)
    return undefined;
  const signature = Buffer.from(String(head.signature), 'hex');
  if (!new TrustedKeys([publicKey], []).verify(head.key_id, bytes, signature)) return undefined;
  return { appId, sandboxId, number: head.segment, digest, publicKey };
}
