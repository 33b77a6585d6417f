import type { Database } from '../../db/database.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import type { Ledger } from '../../ledger/seal.ts';
import type { Clock } from '../../lib/clock.ts';
import { found, invalidField } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import { ExpressionError, type Expressions } from '../engine/expressions.ts';
import { createAppSecrets } from './app-secrets.ts';
import { createDefinitionChanges } from './change.ts';
import { getAutomation, getDefinition } from './find.ts';
import type { FileProblem } from './source-file.ts';
import * as store from './store.ts';

type AutomationDeps = { db: Database; clock: Clock; secrets: Secrets; ledger: Ledger; expressions: Expressions };

export type AutomationService = ReturnType<typeof createAutomationService>;

/** Definitions of automations, and the app's secrets. Runs are in runs/service.ts. */
export function createAutomationService(deps: AutomationDeps) {
  const { db, expressions } = deps;

  return {
    ...createDefinitionChanges(deps),
    ...createAppSecrets(deps),

    get: (caller: Caller, name: string) => getAutomation(db, caller, name),

    async listVersions(caller: Caller, automation: string, page: PageRequest) {
      return store.listGraphs(db, await getDefinition(db, caller, automation), page);
    },

    async getVersion(caller: Caller, automation: string, version: string) {
      const definition = await getDefinition(db, caller, automation);
      return found(/^[1-9]\d{0,8}$/.test(version) && (await store.findGraphVersion(db, definition, Number(version))));
    },

    /** Problems of an automation's text. */
    async checkFile({ appId }: Caller, text: string): Promise<FileProblem[]> {
      try {
        return await expressions.checkFile(appId, text);
      } catch (error) {
        if (!(error instanceof ExpressionError)) throw error;
        throw invalidField('text', error.message.replace(/^The text /, '').replace(/\.$/, ''));
      }
    },

    listInvocable: (caller: Caller, page: PageRequest) => store.listInvocable(db, caller, page),

    list: (caller: Caller, filter: store.AutomationFilter, page: PageRequest) =>
      store.listAutomations(db, caller, filter, page),
  };
}
