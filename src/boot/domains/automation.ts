import type { FastifyInstance } from 'fastify';
import { createAutomations } from '../../automations/domain.ts';
import { createEvents } from '../../events/domain.ts';
import { deleteEndedExtractions } from '../../extractions/store.ts';
import { version } from '../../lib/version.ts';
import type { Llm } from '../../llm/service.ts';
import { createRunTools } from '../../mcp/run-tools.ts';
import { createModels } from '../../models/domain.ts';
import { observeDeliveries } from '../../monitoring/traffic.ts';
import { createWebhooks } from '../../webhooks/domain.ts';
import { programHosts } from '../../webhooks/hosts.ts';
import { createNodeDomains } from '../node-domains.ts';
import type { Services } from '../services.ts';
import type { Base, DomainGroup } from './base.ts';
import type { Content } from './content.ts';

export type Automation = ReturnType<typeof createAutomation>;

/** What happens by itself: runs, the models that they call, events and webhooks. */
export function createAutomation(
  services: Services,
  base: Base,
  { content, llm, openApi }: { content: Content; llm: Llm; openApi: () => Promise<FastifyInstance> },
) {
  const { config, parser, fetcher, baseUrl, process, metrics } = services;
  const { files, kv, extractions, knowledge } = content;
  const runTools = createRunTools({ openApi, baseUrl, readFile: files.readRange });
  const nodeDomains = createNodeDomains({ ...base, kv, files, extractions, knowledge, runTools, parser, fetcher });
  const automations = createAutomations(
    {
      ...{ ...services, ledger: base.ledger, version, llm, runTokensMax: config.llmRunTokens },
      expressions: process.expressions,
      deleteExtractions: deleteEndedExtractions,
      hosts: programHosts,
    },
    nodeDomains,
  );
  const models = createModels({
    ...{ ...base, fetcher, operator: llm.operator, daysKept: config.modelCallDays },
    onChanged: knowledge.embedding.recheck,
    tryModel: llm.tryModel,
  });
  const { wakes } = automations.service;
  const webhooks = createWebhooks({
    ...{ ...base, fetcher, timeouts: process.timeouts, observe: observeDeliveries(metrics) },
    ...{ offerRun: wakes.offer, programs: wakes },
  });
  const events = createEvents({ ...base, streamSecondsMax: config.streamSeconds, onLogged: webhooks.onLogged });
  return {
    domains: [automations, models, webhooks, events],
    ticker: automations.ticker,
    services: {
      ...{ ...automations.service, ...models.service, webhooks: webhooks.service, events: events.service, llm },
      contextTokens: config.llmContextTokens,
      requestMsMax: config.llmRequestSeconds * 1000,
    },
  } satisfies DomainGroup & { ticker: unknown };
}
