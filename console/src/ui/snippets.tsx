import { useState } from 'react';
import { Code } from './code.tsx';
import { Copy } from './copy.tsx';
import { Tabs } from './tabs.tsx';

type Way = 'curl' | 'sdk' | 'python' | 'openai' | 'mcp';
const names: Record<Way, string> = { curl: 'curl', sdk: 'SDK', python: 'Python', openai: 'OpenAI client', mcp: 'MCP' };

/** The same request for a terminal, for programs and for agents. */
export function Snippets({ label, snippets }: { label: string; snippets: Partial<Record<Way, string>> }) {
  const ways = Object.keys(snippets) as Way[];
  const [way, setWay] = useState<Way>(ways[0] ?? 'curl');
  return (
    <Tabs<Way>
      label={label}
      value={way}
      onChange={setWay}
      tabs={ways.map((one) => ({
        id: one,
        name: names[one],
        panel: (
          <>
            <Code text={snippets[one] ?? ''} label={`${label}: ${names[one]}`} />
            <div>
              <Copy text={snippets[one] ?? ''} />
            </div>
          </>
        ),
      }))}
    />
  );
}

/**
 * A request that creates something, with curl, the SDK and Python.
 * @param key a new key, while it is shown; otherwise the snippet uses a variable, so that no page contains a secret
 */
export function requestSnippets(
  method: string,
  path: string,
  body: unknown,
  key?: string,
): Record<'curl' | 'sdk' | 'python', string> {
  const url = `${location.origin}${path}`;
  const json = JSON.stringify(body, null, 2);
  return {
    curl: [
      `curl -X ${method} '${url}' \\`,
      `  -H "x-api-key: ${key ?? '$QUARRY_SECRET_KEY'}" \\`,
      `  -H 'content-type: application/json' \\`,
      `  -d '${json.replaceAll("'", "'\\''")}'`,
    ].join('\n'),
    sdk: [
      "import { PlatformClient } from '@archastro/sdk';",
      '',
      `const client = PlatformClient.withSecretKey(${key === undefined ? 'process.env.QUARRY_SECRET_KEY' : `'${key}'`}, '${location.origin}');`,
      `console.log(await client.${path.split('/').at(-1)}.create(${json}));`,
    ].join('\n'),
    python: [
      key === undefined ? 'import os, requests' : 'import requests',
      '',
      `response = requests.request("${method}", "${url}",`,
      `    headers={"x-api-key": ${key === undefined ? 'os.environ["QUARRY_SECRET_KEY"]' : `"${key}"`}},`,
      `    json=${pythonOf(body).replaceAll('\n', '\n    ')})`,
      'response.raise_for_status()',
      'print(response.json())',
    ].join('\n'),
  };
}

/** The first request, which is the same everywhere, and how agents connect. */
export function firstSteps(key?: string) {
  const file = { filename: 'hello.md', content_type: 'text/markdown', data: btoa('# Hello\n') };
  const server = { type: 'http', url: `${location.origin}/mcp`, headers: { 'x-api-key': key ?? 'sk_…' } };
  return {
    ...requestSnippets('POST', '/api/v1/files', file, key),
    openai: [
      "import OpenAI, { toFile } from 'openai';",
      '',
      `const openai = new OpenAI({ baseURL: '${location.origin}/v1', apiKey: ${key === undefined ? 'process.env.QUARRY_SECRET_KEY' : `'${key}'`} });`,
      "const file = await toFile(Buffer.from('# Hello\\n'), 'hello.md');",
      "console.log(await openai.files.create({ file, purpose: 'assistants' }));",
    ].join('\n'),
    mcp: JSON.stringify({ mcpServers: { quarry: server } }, null, 2),
  };
}

function pythonOf(value: unknown): string {
  const literals: Record<string, string> = { true: 'True', false: 'False', null: 'None' };
  return JSON.stringify(value, null, 4).replace(
    /("(?:[^"\\]|\\.)*")|\b(true|false|null)\b/g,
    (_, text: string | undefined, word: string) => text ?? literals[word] ?? word,
  );
}
