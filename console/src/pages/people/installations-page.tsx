import { call } from '../../api/client.ts';
import type { Installation } from '../../api/generated.ts';
import { PrincipalName } from '../../principals/principal-name.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Copy, Id } from '../../ui/copy.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { DeleteButton, ResourcePage } from '../../ui/resource-page.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

const columns: Column<Installation>[] = [
  { id: 'kind', name: 'Kind', look: 'main', sort: ({ kind }) => kind, cell: ({ kind }) => kind },
  { id: 'agent', name: 'Agent', cell: ({ agent }) => <PrincipalName id={agent} /> },
  {
    id: 'url',
    name: 'Inbound URL',
    cell: ({ inbound_url }) => (inbound_url === undefined ? '–' : <Copy text={inbound_url} label="Copy the URL" />),
  },
  { id: 'id', name: 'Id', look: 'wide', cell: ({ id }) => <Id id={id} label={`…${id.slice(-6)}`} /> },
  { id: 'created', name: 'Created', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
  {
    id: 'actions',
    name: 'Actions',
    look: 'actions',
    cell: ({ id, kind }) => (
      <DeleteButton
        title={`Remove ${kind}?`}
        action="Remove the installation"
        label="Remove"
        quiet={`${kind} ${id}`}
        perform={async () => {
          await call('DELETE /api/v1/installations/{installation}', { path: { installation: id } });
          refresh('GET /api/v1/installations');
        }}
      >
        Its source and the documents in it are deleted, and its URL stops working. This cannot be undone.
      </DeleteButton>
    ),
  },
];

/** The connections that bring messages and webhooks to an agent. */
export function InstallationsPage() {
  const [{ page }, change] = useFilters({ page: '1' });
  const installations = useApi('GET /api/v1/installations', { query: { page: pageNumber(page) } }, { keep: true });
  return (
    <ResourcePage<Installation>
      title="Installations"
      lead="What brings content to an agent: messages of its threads, or documents that others send to a secret URL."
      label="Installations"
      loaded={installations}
      columns={columns}
      rowId={({ id }) => id}
      empty="Install webhook/inbound for an agent to get a URL that other systems post documents to."
      onPage={(next) => change({ page: String(next) })}
      create={{
        button: 'New installation',
        title: 'New installation',
        submit: 'Install',
        fields: [
          { name: 'agent', label: 'Agent', kind: 'principal', principals: ['agent'], required: true },
          {
            name: 'kind',
            label: 'Kind',
            kind: 'select',
            options: [
              ['webhook/inbound', 'webhook/inbound: documents by a secret URL'],
              ['thread/messages', 'thread/messages: messages of its threads'],
            ],
          },
        ],
        initial: { kind: 'webhook/inbound' },
        onSubmit: async (body) => {
          await call('POST /api/v1/installations', { body: body as { agent: string; kind: Installation['kind'] } });
          refresh('GET /api/v1/installations');
        },
      }}
    />
  );
}
