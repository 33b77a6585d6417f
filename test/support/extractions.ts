import type { ErrorBody, TestServer } from './server.ts';

type TestOutput = {
  id: string;
  ordinal: number;
  source_url: string;
  state: 'done' | 'failed';
  title?: string;
  error?: { code: string; message: string };
  file?: { id: string; filename: string; url: string; size: number; agent?: string };
  metadata: Record<string, unknown>;
  page_type?: string;
  structured?: Record<string, string>;
  ocr?: { pages: number[]; confidence: number };
  truncated?: boolean;
  data?: unknown;
  spans?: { path: string; start: number; end: number }[];
  data_file?: { id: string; filename: string; url: string; content_type: string };
  data_error?: { code: string; message: string };
};

export type TestExtraction = {
  id: string;
  kind: string;
  state: 'running' | 'done' | 'failed';
  mode?: string;
  max_pages?: number;
  include_paths?: string[];
  exclude_paths?: string[];
  max_depth?: number;
  allow_subdomains?: boolean;
  ignore_robots?: boolean;
  sitemap?: string;
  agent?: string;
  failure_reason?: string;
  error?: { code: string; message: string };
  output_count: number;
  byte_count: number;
  outputs: TestOutput[];
  progress: { discovered: number; done: number; failed: number };
  waiting_count?: number;
  left_out?: { url: string; reason: string }[];
  schema?: unknown;
  instructions?: string;
  data_progress?: { pending: number; done: number; failed: number; pieces: number; pieces_done: number };
  usage?: { total_tokens: number; requests: number };
};

/** Creates a URL extraction with the key and waits until it has ended. */
export async function extractUrl(
  server: TestServer,
  key: string,
  body: Record<string, unknown>,
): Promise<TestExtraction> {
  const created = await server.api<TestExtraction & ErrorBody>('POST', '/api/v1/extractions', {
    key,
    body: { destination_kind: 'storage', destination_path: 'out', mode: 'site', ...body },
  });
  if (created.status !== 202) throw new Error(`${created.status} ${created.text}`);
  return waitForExtraction(server.baseUrl, key, created.body.id);
}

/** Follows the extraction's event stream to its end, and returns the whole extraction. */
export async function waitForExtraction(baseUrl: string, key: string, id: string): Promise<TestExtraction> {
  const stream = await fetch(`${baseUrl}/api/v1/extractions/${id}/stream`, { headers: { 'x-api-key': key } });
  if (stream.status !== 200) throw new Error(`The stream answered ${stream.status}`);
  await stream.text();
  const answer = await fetch(`${baseUrl}/api/v1/extractions/${id}`, { headers: { 'x-api-key': key } });
  return (await answer.json()) as TestExtraction;
}

export async function outputText(output: TestOutput | undefined): Promise<string> {
  if (output?.file === undefined) throw new Error('This output has no file.');
  return (await fetch(output.file.url)).text();
}
