export const pageTypes = ['article', 'documentation', 'service', 'forum', 'collection', 'listing', 'product'] as const;
export type PageType = (typeof pageTypes)[number];
