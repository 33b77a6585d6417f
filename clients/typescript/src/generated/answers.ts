// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import type { CallOptions, Connection } from '../connection.ts';
import type * as S from './schema.ts';

export const answers = (c: Connection) => ({
  /** Answer a question from sources. */
  create: (body: S.CreateAnswerRequest, options?: CallOptions): Promise<S.Answer> => c.postOnce('/api/v1/answers', body, options),
  /** Check the quotes of a text. */
  verify: (body?: S.VerifyCitationsRequest, options?: CallOptions): Promise<S.SignedCitations> => c.postOnce('/api/v1/citations/verify', body, options),
});
