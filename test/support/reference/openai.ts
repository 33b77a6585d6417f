import { uploadForm } from '../authorization/openai.ts';
import type { TestApp } from '../provisioner.ts';
import type { Recorder } from './recorder.ts';

/** The routes under `/v1`. */
export async function recordOpenAi(recorder: Recorder, app: TestApp): Promise<void> {
  const upload = { as: { key: app.secretKey, headers: uploadForm.headers }, body: uploadForm.body };
  const file = await recorder.record('openaiCreateFile', upload);
  const ofFile = { path: { file: file.id } };
  await recorder.record('openaiListFiles', { query: { purpose: 'assistants' } });
  await recorder.record('openaiGetFile', ofFile);
  await recorder.record('openaiGetFileContent', ofFile);

  const store = await recorder.record('openaiCreateVectorStore', {
    body: { name: 'Handbook', metadata: { team: 'shop' } },
  });
  const path = { source: store.id };
  const body = { file_id: file.id, attributes: { language: 'en' } };
  await recorder.record('openaiCreateVectorStoreFile', { path, body });
  const inStore = { path: { ...path, file: file.id } };
  await recorder.until('openaiGetVectorStoreFile', inStore, ({ status }) => status === 'completed');
  await recorder.record('openaiUpdateVectorStoreFile', {
    ...inStore,
    body: { attributes: { language: 'en', year: 2026 } },
  });
  await recorder.record('openaiListVectorStoreFiles', { path, query: { filter: 'completed' } });
  await recorder.record('openaiGetVectorStoreFileContent', inStore);
  await recorder.record('openaiSearchVectorStore', {
    path,
    body: { query: 'text', max_num_results: 5, filters: { type: 'eq', key: 'language', value: 'en' } },
  });
  const asked = { input: 'When do parcels leave?', tools: [{ type: 'file_search', vector_store_ids: [store.id] }] };
  const response = await recorder.record('openaiCreateResponse', { body: asked });
  const ofResponse = { path: { response: response.id } };
  await recorder.record('openaiGetResponse', ofResponse);
  await recorder.record('openaiListInputItems', ofResponse);
  await recorder.record('openaiDeleteResponse', ofResponse);
  const other = await recorder.send<{ id: string }>('openaiCreateFile', upload);
  const batch = await recorder.record('openaiCreateFileBatch', { path, body: { file_ids: [other.body.id] } });
  const ofBatch = { path: { ...path, ingestion: batch.id } };
  await recorder.until('openaiGetFileBatch', ofBatch, ({ status }) => status === 'completed');
  await recorder.record('openaiListFileBatchFiles', ofBatch);
  await recorder.record('openaiCancelFileBatch', ofBatch);
  await recorder.record('openaiListVectorStores', { query: { limit: '1' } });
  await recorder.record('openaiGetVectorStore', { path });
  await recorder.record('openaiUpdateVectorStore', { path, body: { name: 'Handbook of the shop' } });
  await recorder.record('openaiDeleteVectorStoreFile', inStore);
  await recorder.record('openaiDeleteVectorStore', { path });
  await recorder.record('openaiDeleteFile', ofFile);
}
