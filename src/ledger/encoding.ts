import { hash } from 'node:crypto';
import { formatUuidBytes, uuidBytes } from '../lib/ids.ts';

/*
 * The bytes that digests and signatures cover. docs/verify.md describes them for programs in other languages, and
 * migrations/0021_ledger.sql encodes journal entries that have no link yet in the same way.
 */

const digestBytes = 32;
/** The predecessor of the first link and of the first segment. */
export const origin = Buffer.alloc(digestBytes);

/** Fields as PostgreSQL's binary COPY writes them: the length in bytes as 32 bits, then UTF-8; -1 for null. */
export function encodeFields(fields: readonly (string | null)[]): Buffer {
  const lengths = fields.map((field) => (field === null ? -1 : Buffer.byteLength(field)));
  const bytes = Buffer.alloc(lengths.reduce((sum, length) => sum + 4 + Math.max(0, length), 0));
  let at = 0;
  for (const [index, field] of fields.entries()) {
    at = bytes.writeInt32BE(lengths[index] as number, at);
    if (field !== null) at += bytes.write(field, at);
  }
  return bytes;
}

export function sha256(...parts: readonly Uint8Array[]): Buffer {
  const [only] = parts;
  return hash('sha256', parts.length === 1 && only ? only : Buffer.concat(parts), 'buffer');
}

export function digestFields(fields: readonly (string | null)[]): Buffer {
  return sha256(encodeFields(fields));
}

type RunEntry = {
  appId: string;
  runId: string;
  sequence: number;
  id: string;
  type: string;
  nodeId: string | null;
  commandId: string | null;
  timerId: string | null;
  /** The JSON exactly as it is stored. */
  record: string;
  at: Date;
};

export function digestRunEntry(entry: RunEntry): Buffer {
  const { appId, runId, sequence, id, type, nodeId, commandId, timerId, record, at } = entry;
  const time = formatMicros(at.getTime() * 1_000);
  return digestFields([
    ...['quarry:run-entry:1', appId, runId, String(sequence), id, type],
    ...[nodeId, commandId, timerId, record, time],
  ]);
}

/** The links of entries that follow a link, one after the other. */
export function foldLinks(after: Uint8Array | null, digests: readonly Uint8Array[]): Buffer {
  let link: Uint8Array = after ?? origin;
  return Buffer.concat(
    digests.map((digest) => {
      link = sha256(link, digest);
      return link;
    }),
  );
}

/** One record of a segment: an audit entry, or the anchor of a run. */
export type Item = {
  /** The id of the entry or the run. */
  id: string;
  /** The run's sequence at that time; 0 for an audit entry. */
  sequence: number;
  atMicros: number;
  digest: Buffer;
};

const itemBytes = 60;

/**
 * Encodes for each item: the uuid, the sequence (32 bits), the time in microseconds since 1970 (64 bits), and the
 * digest.
 */
export function encodeItems(items: readonly Item[]): Buffer {
  const list = Buffer.alloc(items.length * itemBytes);
  for (const [index, { id, sequence, atMicros, digest }] of items.entries()) {
    const at = index * itemBytes;
    uuidBytes(id).copy(list, at);
    list.writeInt32BE(sequence, at + 16);
    list.writeBigInt64BE(BigInt(atMicros), at + 20);
    digest.copy(list, at + 28);
  }
  return list;
}

export function decodeItems(list: Buffer): Item[] {
  return Array.from({ length: Math.floor(list.length / itemBytes) }, (_, index) => {
    const at = index * itemBytes;
    return {
      id: formatUuidBytes(list.subarray(at, at + 16)),
      sequence: list.readInt32BE(at + 16),
      atMicros: Number(list.readBigInt64BE(at + 20)),
      digest: list.subarray(at + 28, at + itemBytes),
    };
  });
}

export type SegmentKind = 'start' | 'audit' | 'runs' | 'retention' | 'deletion';

/** What a segment states. Times are in UTC with microseconds, as `ledger_time` writes them. */
export type SegmentHeader = {
  appId: string;
  sandboxId: string;
  number: number;
  kind: SegmentKind;
  sealedAt: string;
  records: number;
  lastAt: string | null;
  listDigest: Buffer;
  detail: string | null;
  previous: Buffer;
  keyId: string;
};

/** The bytes that are signed; their SHA-256 is the segment's digest. */
export function encodeHeader(header: SegmentHeader): Buffer {
  return encodeFields([
    'quarry:segment:1',
    header.appId,
    header.sandboxId,
    String(header.number),
    header.kind,
    header.sealedAt,
    String(header.records),
    header.lastAt,
    header.listDigest.toString('hex'),
    header.detail,
    header.previous.toString('hex'),
    header.keyId,
  ]);
}

/** Formats a time as the ledger does. */
export function formatMicros(micros: number): string {
  const ms = Math.floor(micros / 1_000);
  return new Date(ms).toISOString().replace('Z', `${String(micros - ms * 1_000).padStart(3, '0')}Z`);
}
