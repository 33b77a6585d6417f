import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { referenceExamples } from '../../../src/http/openapi/docs-examples.ts';
import { htmlPage, startSite } from '../../support/fixture-site.ts';
import { startLanguageModel } from '../../support/language-model.ts';
import { startProvider } from '../../support/oidc-provider.ts';
import { recordModels, recordModelUse } from '../../support/reference/models.ts';
import { recordOpenAi } from '../../support/reference/openai.ts';
import { Recorder } from '../../support/reference/recorder.ts';
import { invoiceResponse, recordStructuredExtraction } from '../../support/reference/structured.ts';
import {
  recordAssistants,
  recordDeletions,
  recordIssuers,
  recordSignIn,
  recordTenants,
} from '../../support/reference/tenants.ts';
import {
  recordApprovals,
  recordAutomations,
  recordEntries,
  recordFiles,
  recordKnowledge,
  recordOperations,
  recordWebhooks,
} from '../../support/reference/work.ts';
import { startTestServer } from '../../support/server.ts';
import { projectRoot, readProjectFile } from '../../support/source.ts';

/*
 * Every example of the reference is a request that was sent, with its response. After a change of an operation, and for
 * a new one, record them again: QUARRY_EXAMPLES=1 node test/run.ts test/api/http/reference-examples.test.ts
 */
const file = 'src/http/openapi/examples.json';

const model = await startLanguageModel();
model.script = ({ messages }) =>
  messages.at(-1)?.content.includes('parcels') ? 'The next working day [1].' : invoiceResponse;
const server = await startTestServer({
  env: {
    QUARRY_FETCH_ALLOW: '127.0.0.0/8',
    QUARRY_MCP_OAUTH: 'true',
    QUARRY_LLM_URL: model.url,
    QUARRY_LLM_MODEL: 'small',
  },
});
const site = await startSite({ '/': htmlPage('Example Domain'), '/hook': 'ok' });
const provider = await startProvider({ redirectUris: [`${server.baseUrl}/console/oidc/callback`] });
after(async () => {
  await server.close();
  await model.close();
  await site.close();
  await provider.close();
});

test('each example of the reference is accepted by the server and returns what it shows', async () => {
  const app = await server.provision.app();
  const recorder = new Recorder(server, { key: app.secretKey });
  const tenants = await recordTenants(recorder, app);
  await recordWebhooks(recorder, `${site.origin}/hook`);
  await recordModels(recorder, tenants.agent);
  await recordFiles(recorder, app, tenants, `${site.origin}/`);
  const extracting = await server.provision.app();
  await recordModelUse(recorder, extracting, () => recordStructuredExtraction(recorder, extracting));
  await recordEntries(recorder, tenants);
  await recordKnowledge(recorder, tenants);
  await recordOpenAi(recorder, app);
  await recordAutomations(recorder, server, app);
  await recordApprovals(recorder, server, app);
  await recordOperations(recorder, server, app);
  await recordIssuers(recorder, app, tenants, provider.issuer);
  await recordAssistants(recorder, server, app, tenants);
  await recordSignIn(recorder, server, app, tenants);
  await recordDeletions(recorder, tenants);
  const examples = recorder.examples();
  if (process.env.QUARRY_EXAMPLES) writeFileSync(join(projectRoot, file), `${JSON.stringify(examples, null, 2)}\n`);
  assert.deepEqual(examples, JSON.parse(readProjectFile(file)));
});

/** Ends at the first failure. A push returns after two seconds at the latest; here it returns when it has ended. */
const strictShell = `set -eo pipefail
curl() {
  local response
  response=$(command curl --fail-with-body "$@")
  printf '%s\\n' "$response"
  if [[ "$*" != */ingest\\ * ]]; then return; fi
  local ingestion=$BASE/api/v1/knowledge_ingestions/$(id <<< "$response")
  until [[ $(command curl -sf "$ingestion" -H "x-api-key: $KEY") =~ '"status":"'(succeeded|failed) ]]; do sleep 0.05; done
}
`;

test('the first steps of the reference page run in a shell as they are written', async () => {
  const app = await server.provision.app();
  const directory = mkdtempSync(join(tmpdir(), 'quarry-reference-'));
  try {
    const shown = referenceExamples.map(({ text }) => text).join('\n');
    const text = shown
      .replace('{base}', server.baseUrl)
      .replace('sk_…', app.secretKey)
      .replace('https://example.com', site.origin);
    const options = { cwd: directory, timeout: 300_000 };
    const { stdout } = await promisify(execFile)('bash', ['-c', strictShell + text], options);
    for (const part of [
      '"access_token":',
      '"state":"done"',
      'A refund takes five days.',
      '"value":"dark"',
      'Hello Grace',
    ])
      assert.ok(stdout.includes(part), `${part}\n${stdout}`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
