import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import type { Agent } from '../../api/generated.ts';
import { PrincipalPicker } from '../../principals/picker.tsx';
import { Owner } from '../../principals/principal-name.tsx';
import { useSession } from '../../session.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Json } from '../../ui/code.tsx';
import { Id } from '../../ui/copy.tsx';
import { type FieldSpec, FormDialog } from '../../ui/form-dialog.tsx';
import { Details, PageHead } from '../../ui/page.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { DeleteButton, ResourcePage } from '../../ui/resource-page.tsx';
import { SearchField } from '../../ui/search-field.tsx';
import { Shown } from '../../ui/shown.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { SearchPlayground } from '../knowledge/search-playground.tsx';

const fields: FieldSpec[] = [
  { name: 'name', label: 'Name', required: true },
  { name: 'lookup_key', label: 'Lookup key', hint: 'Your own name for it, unique in the app.' },
  { name: 'description', label: 'Description', kind: 'long' },
  {
    name: 'identity',
    label: 'Identity',
    kind: 'long',
    hint: 'Who the agent is: the text that your program prompts with.',
  },
  { name: 'model', label: 'Model', placeholder: 'a model of your provider' },
  { name: 'email', label: 'E-mail', kind: 'email' },
];
const owner: FieldSpec = {
  name: 'owner',
  label: 'Owner',
  kind: 'principal',
  principals: ['org', 'team', 'user'],
  hint: 'Who sees and changes it. Without one, it belongs to the app.',
};

const columns: Column<Agent>[] = [
  {
    id: 'name',
    name: 'Agent',
    look: 'main',
    sort: ({ name }) => name,
    cell: ({ id, name }) => <Link href={`/agents/${id}`}>{name}</Link>,
  },
  { id: 'key', name: 'Lookup key', sort: (one) => one.lookup_key ?? '', cell: (one) => one.lookup_key ?? '–' },
  { id: 'owner', name: 'Owner', cell: (agent) => <Owner of={agent} /> },
  { id: 'id', name: 'Id', look: 'wide', cell: ({ id }) => <Id id={id} label={`…${id.slice(-6)}`} /> },
  { id: 'created', name: 'Created', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
];

export function AgentsPage() {
  const { place, isDeveloper } = useSession();
  const [{ page, q, org }, change] = useFilters({ page: '1', q: '', org: (isDeveloper && place.org) || '' });
  const query = { page: pageNumber(page), ...(q === '' ? {} : { search: q }), ...(org === '' ? {} : { org }) };
  const agents = useApi('GET /api/v1/agents', { query }, { keep: true });
  return (
    <ResourcePage<Agent>
      title="Agents"
      lead="Identities that your programs act with. An agent owns files, sources and entries, and searches what it owns."
      label="Agents"
      loaded={agents}
      columns={columns}
      rowId={({ id }) => id}
      filtered={q !== '' || org !== ''}
      empty="Create an agent to give your program its own knowledge, files and memory."
      onPage={(next) => change({ page: String(next) })}
      create={{
        button: 'New agent',
        title: 'New agent',
        submit: 'Create the agent',
        fields: [...fields, owner],
        initial: { owner: isDeveloper ? place.org : undefined },
        onSubmit: async ({ owner: named, ...body }) => {
          await call('POST /api/v1/agents', { body: { ...(body as { name: string }), ...ownerMember(named) } });
          refresh('GET /api/v1/agents');
        },
      }}
    >
      <SearchField label="Search agents" value={q} onChange={(next) => change({ q: next })} />
      {isDeveloper ? (
        <PrincipalPicker
          label="Organisation"
          kinds={['org']}
          any="All organisations"
          value={org}
          onChange={(next) => change({ org: next })}
        />
      ) : null}
    </ResourcePage>
  );
}

/** The owner as a member of a body, by its id. */
export function ownerMember(id: unknown): { org?: string; team?: string; agent?: string; user?: string } {
  const text = typeof id === 'string' ? id : '';
  const kind = { org: 'org', tem: 'team', agt: 'agent', usr: 'user' }[text.slice(0, 3)];
  return kind === undefined ? {} : { [kind]: text };
}

export function AgentPage({ id }: { id: string }) {
  const path = { agent: id };
  const agent = useApi('GET /api/v1/agents/{agent}', { path });
  const [editing, setEditing] = useState(false);
  const [, navigate] = useLocation();
  return (
    <Shown loaded={agent}>
      {(found) => (
        <>
          <PageHead title={found.name} lead={<Id id={found.id} />}>
            <Link className="button plain" href={`/knowledge?owner=${id}`}>
              Its sources
            </Link>
            <Button onClick={() => setEditing(true)}>Edit</Button>
            <DeleteButton
              title={`Delete ${found.name}?`}
              action="Delete the agent"
              perform={async () => {
                await call('DELETE /api/v1/agents/{agent}', { path });
                refresh('GET /api/v1/agents');
                navigate('/agents');
              }}
            >
              This also deletes what belongs to the agent. Automations that run as it are paused. This cannot be undone.
            </DeleteButton>
          </PageHead>
          <section className="card">
            {found.profile_picture?.url === undefined ? null : (
              <img src={found.profile_picture.url} alt="Profile" height="64" />
            )}
            <Details
              rows={[
                ['Lookup key', found.lookup_key],
                ['Description', found.description],
                ['Identity', found.identity],
                ['Model', found.default_model],
                ['E-mail', found.email],
                ['Owner', <Owner key="owner" of={found} />],
                ['Created', <Time key="created" at={found.created_at} />],
              ]}
            />
            {Object.keys(found.metadata).length === 0 ? null : <Json value={found.metadata} label="Metadata" />}
          </section>
          <h2>Search the agent’s knowledge</h2>
          <SearchPlayground agent={id} />
          {editing ? (
            <FormDialog
              title="Edit the agent"
              submit="Save"
              isChange
              fields={[...fields, { name: 'metadata', label: 'Metadata', kind: 'json' }]}
              initial={{ ...found, model: found.default_model }}
              onSubmit={async (body) => agent.replace(await call('PATCH /api/v1/agents/{agent}', { path, body }))}
              onClose={() => setEditing(false)}
            />
          ) : null}
        </>
      )}
    </Shown>
  );
}
