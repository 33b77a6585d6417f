import type { FastifyReply, FastifyRequest } from 'fastify';
import { whenClosed } from '../../http/closed.ts';
import { iso } from '../../http/route/present.ts';
import type { WaitReader } from '../../http/streams/change-waits.ts';
import { presentEntry } from '../present.ts';
import type { Appended } from './append.ts';
import type { PageRow } from './pages.ts';
import type { JournalPart } from './read.ts';

/** A part of a journal, for the holder of the claim. */
export function presentPage({ entries, cursor }: JournalPart) {
  return { journal: presentEntries(entries), ...(cursor === undefined ? {} : { after_cursor: cursor }) };
}

export function presentAppended(appended: Appended) {
  return {
    sequence: appended.sequence,
    cancel_requested: appended.ended,
    ...(appended.leaseUntil === null ? {} : { lease_until: iso(appended.leaseUntil) }),
    command_ids: appended.commandIds,
    entries: presentEntries(appended.entries),
  };
}

function presentEntries(entries: readonly PageRow[]) {
  return entries.map((entry) => presentEntry(entry, false));
}

/** The client that waits for a run. The wait ends with its connection, so that no run is claimed for a client that has gone. */
export function readerOf({ identity, credential }: FastifyRequest, { raw }: FastifyReply): WaitReader {
  // A claim, which is a credential for one run, is checked whenever it is used.
  return { identity: identity ?? { kind: 'anonymous' }, credential, onGone: (end) => whenClosed(raw, end) };
}
