import type { TestServer } from './server.ts';

export type Json = Record<string, unknown>;
type Auth = { key?: string; token?: string };
type Hit = Json & { id: string; content: string; document: string; start_byte: number; end_byte: number };
export type TestIngestion = {
  id: string;
  status: string;
  metadata: Json & { document?: string; document_reused?: boolean; already_active?: boolean; items?: Json[] };
  stats: Json & { errors?: Json[] };
  error?: { code: string; message: string };
};

/** Short calls of one server's knowledge routes, as one caller. */
export function knowledgeOf(server: TestServer, auth: Auth) {
  const send = <T = Json>(method: string, path: string, body?: unknown) =>
    server.api<T>(method, `/api/v1${path}`, { ...auth, ...(body === undefined ? {} : { body }) });

  async function waitForIngestion(id: string): Promise<TestIngestion> {
    const deadline = Date.now() + 300_000;
    for (;;) {
      const { body } = await send<TestIngestion>('GET', `/knowledge_ingestions/${id}`);
      if (body.status === 'succeeded' || body.status === 'failed') return body;
      if (Date.now() > deadline) throw new Error(`The ingestion is ${body.status} forever.`);
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  }

  return {
    send,
    waitForIngestion,
    async createSource(body: Json): Promise<string> {
      const answer = await send<{ id: string }>('POST', '/knowledge_sources', { type: 'knowledge/documents', ...body });
      if (answer.status !== 201) throw new Error(answer.text);
      return answer.body.id;
    },
    /** Ingests and waits until the ingestion has ended. */
    async ingest(source: string, body: Json, route = 'ingest'): Promise<TestIngestion> {
      const answer = await send<TestIngestion>('POST', `/knowledge_sources/${source}/${route}`, body);
      if (answer.status !== 201) throw new Error(answer.text);
      return waitForIngestion(answer.body.id);
    },
    async push(source: string, data: string, more: Json = {}): Promise<string> {
      const answer = await send<TestIngestion>('POST', `/knowledge_sources/${source}/ingest`, {
        content: { data },
        ...more,
      });
      const ingestion = answer.status === 201 ? await waitForIngestion(answer.body.id) : undefined;
      if (ingestion?.status !== 'succeeded' || !ingestion.metadata.document) throw new Error(answer.text);
      return ingestion.metadata.document;
    },
    async search(source: string, body: Json | string): Promise<Hit[]> {
      const answer = await send<{ data: Hit[] }>(
        'POST',
        `/knowledge_sources/${source}/search`,
        typeof body === 'string' ? { query: body } : body,
      );
      if (answer.status !== 200) throw new Error(answer.text);
      return answer.body.data;
    },
  };
}
