import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { htmlPage, startSite } from '../support/fixture-site.ts';
import { startProvider } from '../support/oidc-provider.ts';
import { Recorder } from '../support/reference/recorder.ts';
import { recordDeletions, recordIssuers, recordSignIn, recordTenants } from '../support/reference/tenants.ts';
import {
  recordAutomations,
  recordEntries,
  recordFiles,
  recordKnowledge,
  recordOperations,
  recordWebhooks,
} from '../support/reference/work.ts';
import { startTestServer } from '../support/server.ts';
import { projectRoot, readProjectFile } from '../support/source.ts';

/*
 * Every example of the reference is a request that was sent, with its response. After a change of an operation, and for
 * a new one, record them again: QUARRY_EXAMPLES=1 node test/run.ts test/api/reference-examples.test.ts
 */
const file = 'src/http/openapi-examples.json';

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
const site = await startSite({ '/': htmlPage('Example Domain'), '/hook': 'ok' });
const provider = await startProvider({ redirectUris: [`${server.baseUrl}/console/oidc/callback`] });
after(async () => {
  await server.close();
  await site.close();
  await provider.close();
});

test('each example of the reference is accepted by the server and returns what it shows', {
  timeout: 120_000,
}, async () => {
  const app = await server.provision.app();
  const recorder = new Recorder(server, { key: app.secretKey });
  const tenants = await recordTenants(recorder, app);
  await recordWebhooks(recorder, `${site.origin}/hook`);
  await recordFiles(recorder, app, tenants, `${site.origin}/`);
  await recordEntries(recorder, tenants);
  await recordKnowledge(recorder, tenants);
  await recordAutomations(recorder, server, app);
  await recordOperations(recorder, server, app);
  await recordIssuers(recorder, app, tenants, provider.issuer);
  await recordSignIn(recorder, server, app, tenants);
  await recordDeletions(recorder, tenants);
  const examples = recorder.examples();
  if (process.env.QUARRY_EXAMPLES) writeFileSync(join(projectRoot, file), `${JSON.stringify(examples, null, 2)}\n`);
  assert.deepEqual(examples, JSON.parse(readProjectFile(file)));
});
