import type { Fixtures } from './fixtures.ts';
import type { Expectation } from './matrix.ts';
import { sources } from './tables.ts';

/** What documents were: their readers read it, and those who may change a source restore. */
export function versionExpectations(make: Fixtures['make']): Record<string, Expectation> {
  const versions = '/api/v1/knowledge_documents/:document/versions';
  const source = '/api/v1/knowledge_sources/:source';
  const first = (id: string, rest = '') => ({ path: `/api/v1/knowledge_documents/${id}/versions/1${rest}` });
  const now = () => new Date().toISOString();
  return {
    [`GET ${versions}`]: { table: sources.read, make: make.changedDocument },
    [`GET ${versions}/:version`]: { table: sources.read, make: make.changedDocument, send: ({ id }) => first(id) },
    [`GET ${versions}/:version/comparison`]: {
      table: sources.read,
      make: make.changedDocument,
      send: ({ id }) => first(id, '/comparison?base=2'),
    },
    [`POST ${versions}/:version/restore`]: {
      table: sources.update,
      make: make.changedDocument,
      send: ({ id }) => first(id, '/restore'),
    },
    [`GET ${source}/deleted_documents`]: { table: sources.update, make: make.keepingSource },
    [`GET ${source}/restore`]: {
      table: sources.update,
      make: make.keepingSource,
      send: ({ id }) => ({ path: `/api/v1/knowledge_sources/${id}/restore?at=${now()}` }),
    },
    [`POST ${source}/restore`]: {
      table: sources.update,
      make: make.keepingSource,
      send: () => ({ body: { at: now() } }),
    },
  };
}
