import { Type } from '../lib/type.ts';

export const setAsideJobSchema = Type.Object(
  {
    id: Type.String({ description: 'job_…' }),
    app: Type.String(),
    sandbox: Type.Optional(Type.String()),
    task: Type.String({ description: 'What the job does, such as `crawl`, `ingest` or `advance_run`.' }),
    about: Type.Optional(
      Type.String({ description: 'The id of the run, extraction, ingestion, source or event that waits for the job.' }),
    ),
    reason: Type.String({ description: 'Why its last attempt failed.' }),
    attempts: Type.Integer({ description: 'The number of attempts.' }),
    crashes: Type.Integer({
      description: 'How often its process died while the job was active, or the job threw an uncaught exception.',
    }),
    set_aside_at: Type.String(),
  },
  {
    $id: 'SetAsideJob',
    description:
      'A background job that failed too often, or crashed even in a separate process, and is no longer retried.',
  },
);
