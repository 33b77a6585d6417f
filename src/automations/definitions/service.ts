import type { Database } from '../../db/database.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import type { Ledger } from '../../ledger/seal.ts';
import type { Clock } from '../../lib/clock.ts';
import { found, invalidField } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import { ExpressionError, type Expressions } from '../engine/expressions.ts';
import { type AppSecrets, createAppSecrets } from './app-secrets.ts';
import { createDefinitionChanges, type DefinitionChanges } from './change.ts';
import { getAutomation, getDefinition } from './find.ts';
import type { FileProblem } from './source-file.ts';
import * as store from './store.ts';

type AutomationDeps = { db: Database; clock: Clock; secrets: Secrets; ledger: Ledger; expressions: Expressions };

/** Definitions of automations, and the app's secrets. Runs are in runs/service.ts. */
export type AutomationService = DefinitionChanges &
  AppSecrets & {
    get(caller: Caller, name: string): Promise<store.FullAutomation>;
    list(caller: Caller, filter: store.AutomationFilter, page: PageRequest): Promise<[store.FullAutomation[], number]>;
    /** The automations that the caller may invoke now. */
    listInvocable(caller: Caller, page: PageRequest): Promise<[store.AutomationRow[], number]>;
    listVersions(caller: Caller, automation: string, page: PageRequest): Promise<[store.GraphRow[], number]>;
    getVersion(caller: Caller, automation: string, version: string): Promise<store.GraphRow>;
    /** Problems of an automation's text. */
    checkFile(caller: Caller, text: string): Promise<FileProblem[]>;
  };

export function createAutomationService(deps: AutomationDeps): AutomationService {
  const { db, expressions } = deps;

  return {
    ...createDefinitionChanges(deps),
    ...createAppSecrets(deps),

    get: (caller, name) => getAutomation(db, caller, name),

    async listVersions(caller, automation, page) {
      return store.listGraphs(db, await getDefinition(db, caller, automation), page);
    },

    async getVersion(caller, automation, version) {
      const definition = await getDefinition(db, caller, automation);
      return found(/^[1-9]\d{0,8}$/.test(version) && (await store.findGraphVersion(db, definition, Number(version))));
    },

    async checkFile({ appId }, text) {
      try {
        return await expressions.checkFile(appId, text);
      } catch (error) {
        if (!(error instanceof ExpressionError)) throw error;
        throw invalidField('text', error.message.replace(/^The text /, '').replace(/\.$/, ''));
      }
    },

    listInvocable: (caller, page) => store.listInvocable(db, caller, page),
    list: (caller, filter, page) => store.listAutomations(db, caller, filter, page),
  };
}
