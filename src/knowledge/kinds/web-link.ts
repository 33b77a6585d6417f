import { normalizeUrl } from '../../crawls/page-url.ts';
import { Type } from '../../lib/type.ts';
import type { SourceKind } from './kind.ts';
import { language, schedule, url } from './payload.ts';

export const webLink: SourceKind = {
  type: 'web/link',
  label: 'Web page',
  description: 'One page or document on the web; a pull fetches it again.',
  payload: Type.Object({ url, schedule, language }),
  pushable: false,
  pull: {
    by: 'crawl',
    settings(payload) {
      const start = String(payload?.url);
      return {
        mode: 'link',
        startUrl: normalizeUrl(start) ?? start,
        maxPages: 1,
        includePaths: [],
        excludePaths: [],
        allowSubdomains: false,
        ignoreRobots: false,
        sitemap: 'include',
      };
    },
  },
};
