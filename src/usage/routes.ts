import { operators } from '../http/route/access.ts';
import { iso } from '../http/route/present.ts';
import { type Api, ref } from '../http/route/route.ts';
import { usageSchema } from './schema.ts';
import type { UsageService } from './service.ts';

/** The usage and quotas of an app. */
export function registerUsageRoutes(api: Api, { usage }: { usage: UsageService }): void {
  api.provisioning(operators, {
    method: 'GET',
    path: '/usage',
    operationId: 'getUsage',
    tag: 'Apps',
    summary: 'Get the usage and quotas of the app',
    description: 'Production and each sandbox have separate counts and quotas.',
    responses: { 200: ref(usageSchema) },
    handler: async ({ caller }) => {
      const { pages, tokens, resetsAt, ...rest } = await usage.get(caller);
      const resets_at = iso(resetsAt);
      return { ...rest, pages: { ...pages, resets_at }, tokens: { ...tokens, resets_at } };
    },
  });
}
