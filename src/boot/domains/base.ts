import { parseAllowList } from '../../content/fetch/allow-list.ts';
import type { Domain } from '../../domain.ts';
import { emitEvent } from '../../events/emit.ts';
import type { Ledger } from '../../ledger/seal.ts';
import { createLlm, type Llm } from '../../llm/service.ts';
import { observeModelCalls } from '../../monitoring/model-calls.ts';
import { Capabilities, SignedLinks } from '../../tenancy/capability.ts';
import type { Services } from '../services.ts';

/** What the domains of one database share. */
export type Base = ReturnType<typeof createBase>;

/** Domains that are created together: the background work of each, and what routes call. */
export type DomainGroup = { domains: Domain[]; services: object };

export function createBase(services: Services, ledger: Ledger) {
  const { db, directory, secrets, clock, blobs, baseUrl, contentUrl, streams, credentials } = services;
  return {
    ...{ db, directory, secrets, clock, blobs, baseUrl, contentUrl, streams, credentials, ledger },
    signedLinks: new SignedLinks(secrets),
    capabilities: new Capabilities({ db, secrets }),
  };
}

export function createLanguageModels(services: Services): Llm {
  const { db, secrets, clock, config, log, resolve, process, metrics, settlements } = services;
  return createLlm({
    ...{ db, secrets, clock, config, log, resolve, checkSchema: process.expressions.checkSchema },
    settlements,
    slots: process.llmSlots,
    vectorSlots: process.vectorSlots,
    allow: parseAllowList(config.fetchAllow),
    observe: observeModelCalls(metrics),
    emitReached: (tx, { payload, ...scope }) => emitEvent(tx, { ...scope, name: 'model_budget.reached', payload }),
  });
}
