import { normalizeUrl } from '../../crawls/page-url.ts';
import { defined } from '../../lib/defined.ts';
import { limits } from '../../lib/limits.ts';
import { Type } from '../../lib/type.ts';
import type { SourceKind } from './kind.ts';
import { language, readPayload, schedule, url } from './payload.ts';

const pagesDefault = 100;
const paths = (description: string) => Type.Optional(Type.Array(Type.String(), { maxItems: 100, description }));

const payloadSchema = Type.Object({
  url,
  max_pages: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.integerMax, default: pagesDefault })),
  include_paths: paths('Only paths that match one of these patterns (* matches anything).'),
  exclude_paths: paths('No paths that match one of these patterns.'),
  max_depth: Type.Optional(Type.Integer({ minimum: 0, maximum: limits.integerMax })),
  allow_subdomains: Type.Optional(Type.Boolean()),
  schedule,
  language,
});

export const scrapeSite: SourceKind = {
  type: 'scrape/site',
  label: 'Web site',
  description: 'The pages of a site, crawled from a start page; a pull reads it again.',
  payload: payloadSchema,
  pushable: false,
  pull: {
    by: 'crawl',
    settings(payload) {
      const start = String(payload?.url);
      const given = readPayload(payloadSchema, payload);
      return {
        mode: 'site',
        startUrl: normalizeUrl(start) ?? start,
        maxPages: given.max_pages ?? pagesDefault,
        includePaths: given.include_paths ?? [],
        excludePaths: given.exclude_paths ?? [],
        ...defined({ maxDepth: given.max_depth }),
        allowSubdomains: given.allow_subdomains ?? false,
        ignoreRobots: false,
        sitemap: 'include',
      };
    },
  },
};
