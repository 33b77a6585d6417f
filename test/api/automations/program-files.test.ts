import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { pruneRuns } from '../../../src/automations/retention/prune.ts';
import { deleteEndedExtractions } from '../../../src/extractions/store.ts';
import { createLedger } from '../../../src/ledger/seal.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { ProgramWorker, programOf, started } from '../../support/programs.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';
import { uploadRequests } from '../../support/uploads.ts';

/* Files that programs upload for the runs that they execute. */

const server = await startTestServer();
after(() => server.close());
const { db, clock } = server.services;
const ledger = createLedger(server.services);
const app = await server.provision.app();
const client = new AutomationsClient(server, app);

test('files that a program uploads for its run go with the run, even if it failed', async () => {
  const prune = (dryRun = false) =>
    pruneRuns({ db, clock, ledger, deleteExtractions: deleteEndedExtractions }, { appId: app.app.uuid, dryRun });
  const { id: automation } = await client.createAutomation({
    retention: { days: 1, files: true },
    workflow: programOf('reports'),
  });
  const { id: run } = await client.invoke(automation);
  const work = await new ProgramWorker(client).take(automation);
  await work.write([started('render')]);

  const key = app.secretKey;
  const file = { filename: 'a.txt', content_type: 'text/plain' };
  const inJson = (more: object) =>
    server.api<{ id: string }>('POST', '/api/v1/files', { key, body: { ...file, data: 'aGVsbG8=', ...more } });
  const raw = await server.api<{ id: string }>('POST', `/api/v1/files/uploads?automation_run=${run}`, {
    ...{ key, body: Buffer.from('hello'), headers: { 'content-type': 'text/plain', 'x-filename': 'a.txt' } },
  });
  const link = await server.api<{ url: string }>('POST', '/api/v1/files/upload_urls', {
    ...{ key, body: { ...file, automation_run: run } },
  });
  const { pathname, search } = new URL(link.body.url);
  const linked = await server.api<{ id: string }>('PUT', pathname + search, {
    ...{ body: Buffer.from('hello'), headers: { 'content-type': 'text/plain' } },
  });
  const resumable = await uploadRequests(server.api).create({ key }, 5, { automation_run: run }, { body: 'hello' });
  const made = [(await inJson({ automation_run: run })).body.id, raw.body.id, linked.body.id, resumable.body.file];
  const kept = (await inJson({})).body.id;
  const named = (await inJson({ automation_run: run })).body.id;
  await work.write([{ type: 'node_failed', node_id: 'render', error: { code: 'no', message: 'no' } }]);
  await work.write([{ type: 'run_failed', error: { code: 'no', message: 'no' } }]);
  const listed = await client.call<{ data: { id: string }[] }>('GET', `/files?automation_run=${run}`);
  assert.deepEqual(listed.body.data.map(({ id }) => id).sort(), [...made, named].sort());

  const reader = await client.createAutomation({
    workflow: graphOf({ id: 'a', kind: 'transform', value: 1 }),
  });
  await client.waitForEnd((await client.invoke(reader.id, { payload: { file: named } })).id);
  await db`
    update automation_runs set created_at = now() - interval '9 days', completed_at = now() - interval '9 days'
    where id = ${parseId('automationRun', run) ?? ''}`;
  const counted = await prune(true);
  assert.deepEqual([counted.runs, counted.files], [1, 4]);
  assert.deepEqual(await prune(), counted);
  assert.equal((await client.call('GET', `/automation_runs/${run}`)).status, 404);
  const exists = async (id: string) => (await client.call('GET', `/files/${id}`)).status === 200;
  assert.deepEqual(await Promise.all([...made, kept, named].map(exists)), [false, false, false, false, true, true]);
  const late = await server.api<ErrorBody>('POST', '/api/v1/files', {
    ...{ key, body: { ...file, data: 'aGVsbG8=', automation_run: run } },
  });
  assert.deepEqual([late.status, late.body.error.fields?.[0]?.field], [422, 'automation_run']);
});

test('an upload can name a run only if the caller may execute runs and sees this one', async () => {
  const other = await server.provision.app();
  const { id: run } = await client.invoke((await client.createAutomation({ workflow: programOf('a') })).id);
  const { token } = await server.provision.user(app);
  const limited = async (...scopes: string[]) => {
    const body = { type: 'secret', name: 'some', scopes };
    return (await server.api<{ full_key: string }>('POST', '/api/v1/keys', { key: app.secretKey, body })).body.full_key;
  };
  const file = { filename: 'a.txt', content_type: 'text/plain' };
  const refusals = async (who: { key?: string; token?: string }, automation_run: string) => {
    const body = { ...file, data: 'aGVsbG8=', automation_run };
    const headers = { 'content-type': 'text/plain', 'x-filename': 'a.txt' };
    const query = `automation_run=${automation_run}`;
    const tried = [
      await server.api<ErrorBody>('POST', '/api/v1/files', { ...who, body }),
      await server.api<ErrorBody>('POST', `/api/v1/files/uploads?${query}`, {
        ...who,
        headers,
        body: Buffer.from('a'),
      }),
      await server.api<ErrorBody>('POST', '/api/v1/files/upload_urls', { ...who, body: { ...file, automation_run } }),
      await uploadRequests(server.api).create<ErrorBody>(who, 1, { automation_run }),
    ];
    return tried.map(({ status, body: { error } }) => [status, error?.fields?.[0]?.field]);
  };
  const four = (...expected: unknown[]) => [expected, expected, expected, expected];
  assert.deepEqual(await refusals({ token }, run), four(403, undefined));
  assert.deepEqual(await refusals({ key: await limited('files', 'automations:read') }, run), four(403, undefined));
  const unknown = four(422, 'automation_run');
  assert.deepEqual(await refusals({ key: other.secretKey }, run), unknown);
  assert.deepEqual(await refusals({ key: app.secretKey }, 'atr_0000000000000000000000'), unknown);
  assert.deepEqual(await refusals({ key: app.secretKey }, 'fil_0000000000000000000000'), unknown);
  const allowed = { ...file, data: 'aGVsbG8=', automation_run: run };
  const key = await limited('files', 'automations');
  assert.equal((await server.api('POST', '/api/v1/files', { key, body: allowed })).status, 201);
});
