import { call } from '../../api/client.ts';
import type { KnowledgeDocument, UpdateKnowledgeDocumentRequest } from '../../api/generated.ts';
import { type FieldSpec, FormDialog } from '../../ui/form-dialog.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { ended } from './ingestions.tsx';

const update = 'PATCH /api/v1/knowledge_documents/{document}';
const read = 'GET /api/v1/knowledge_documents/{document}/content';
const editedBytesMax = 256 * 1024;

/** Reloads everything that shows a document. */
export function refreshDocuments() {
  refresh('GET /api/v1/knowledge_documents/{document}', 'GET /api/v1/knowledge_documents', read);
  refresh('GET /api/v1/knowledge_documents/{document}/chunks', 'GET /api/v1/knowledge_documents/{document}/versions');
}

/** Changes a document: its title, its metadata and, if it was not read from a file or the web, its text. */
export function EditDocument({ document, onClose }: { document: KnowledgeDocument; onClose: () => void }) {
  const path = { document: document.id };
  const { file, source_url, total_size, content_type } = document;
  const isText = file === undefined && source_url === undefined && total_size <= editedBytesMax;
  const loaded = useApi(read, { path, query: {} }, { enabled: isText });
  const text = loaded.data?.content;
  if (isText && text === undefined && loaded.error === undefined) return null;
  const fields: FieldSpec[] = [
    { name: 'title', label: 'Title' },
    { name: 'metadata', label: 'Metadata', kind: 'json', hint: 'A JSON object for search filters.' },
  ];
  if (text !== undefined) fields.splice(1, 0, { name: 'text', label: 'Text', kind: 'long', required: true });
  return (
    <FormDialog
      title="Edit the document"
      submit="Save"
      isChange
      fields={fields}
      initial={{ ...document, text }}
      onSubmit={async ({ text: typed, ...changes }) => {
        const type = content_type === 'text/plain' ? 'text/plain' : 'text/markdown';
        const content = typed === undefined ? {} : { content: { data: String(typed), content_type: type } };
        const body: UpdateKnowledgeDocumentRequest = { ...changes, ...content };
        if (Object.keys(body).length > 0) await ended(await call(update, { path, body }));
        refreshDocuments();
      }}
      onClose={onClose}
    />
  );
}
