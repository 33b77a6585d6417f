import type { FastifyInstance } from 'fastify';
import type { AuditLog } from '../audit/log.ts';
import type { CellMembership } from '../cells/placement.ts';
import type { Tasks } from '../domain.ts';
import type { Recurring } from '../jobs/workers.ts';
import { createLedgers } from '../ledger/domain.ts';
import { type Automation, createAutomation } from './domains/automation.ts';
import { createBase, createLanguageModels, type DomainGroup } from './domains/base.ts';
import { createContent } from './domains/content.ts';
import { createOperation } from './domains/operation.ts';
import { createPeople } from './domains/people.ts';
import type { Services } from './services.ts';

export type Domains = ReturnType<typeof createDomains>;

/** Background work: the jobs of every domain, and recurring jobs. */
export type BackgroundWork = {
  tasks: Tasks;
  recurring: Recurring[];
  ticker: Automation['ticker'];
  urgentWork: () => Promise<void> | undefined;
};

/**
 * Creates every domain with its dependencies. Routes and background work share the services.
 * @param openApi the API of this process, for tools that runs call
 * @param cells undefined: every app is in this database
 */
export function createDomains(
  services: Services,
  openApi: () => Promise<FastifyInstance>,
  audit?: AuditLog,
  cells?: CellMembership,
) {
  const ledger = createLedgers(services);
  const base = createBase(services, ledger.service);
  const llm = createLanguageModels(services);
  const content = createContent(services, base, llm, cells?.ownsApp);
  const people = createPeople(services, base, content.services.files, cells?.placement);
  const automation = createAutomation(services, base, { content: content.services, llm, openApi });
  const { ticker } = automation;
  const operation = createOperation(services, base, { ledger, knowledge: content.services.knowledge, audit });
  const groups: DomainGroup[] = [content, people, automation, operation];
  const all = groups.flatMap(({ domains }) => domains);
  for (const domain of all)
    for (const [kind, source] of Object.entries(domain.streams ?? {})) services.streams.register(kind, source);
  const work: BackgroundWork = {
    tasks: Object.assign({}, ...all.map((domain) => domain.tasks)),
    recurring: all.flatMap((domain) => domain.recurring ?? []),
    ...{ ticker, urgentWork: ticker.waking },
  };
  return { ...base, work, ...content.services, ...people.services, ...automation.services, ...operation.services };
}
