import type { Database } from '../../src/db/database.ts';
import { formatId, newUuid } from '../../src/lib/ids.ts';

/** Stores a response of a user under `/v1`, without a model. Returns its id. */
export async function storeResponse(db: Database, userUuid: string): Promise<string> {
  const uuid = newUuid();
  const id = formatId('response', uuid);
  const response = {
    ...{ id, object: 'response', created_at: 0, status: 'completed', error: null, incomplete_details: null },
    ...{ instructions: null, max_output_tokens: null, model: 'test', output: [], parallel_tool_calls: true },
    ...{ previous_response_id: null, store: true, temperature: null, text: { format: { type: 'text' } } },
    ...{ tool_choice: 'auto', tools: [], top_p: null, truncation: 'disabled', background: false, usage: null },
    metadata: {},
  };
  await db`
    insert into openai_responses (app_id, sandbox_id, id, user_id, input, response, document_ids, created_at, expires_at)
    select app_id, sandbox_id, ${uuid}, id, '[]'::jsonb, ${JSON.stringify(response)}::text::jsonb, '{}', now(),
      now() + interval '1 day' from users where id = ${userUuid}`;
  return id;
}
