import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { call, type Item } from '../../api/client.ts';
import type { KnowledgeSource } from '../../api/generated.ts';
import { PrincipalPicker } from '../../principals/picker.tsx';
import { Owner } from '../../principals/principal-name.tsx';
import { useSession } from '../../session.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog, Form } from '../../ui/dialog.tsx';
import { Field, fieldError } from '../../ui/field.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { useAction, useApi } from '../../ui/query.ts';
import { SearchField } from '../../ui/search-field.tsx';
import { State } from '../../ui/state.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { ownerMember } from '../people/agents-page.tsx';
import { CredentialFields, credentialsMember } from './credentials.tsx';
import { emptyPayload, readPayload, SchemaFields } from './schema-form.tsx';
import { sourceName } from './source-name.ts';

type Kind = Item<'GET /api/v1/knowledge_sources/kinds'>;

/** All knowledge sources, and the form for a new one. */
export function SourcesPage() {
  const { place, isDeveloper } = useSession();
  const [filters, change] = useFilters({ page: '1', type: '', q: '', owner: (isDeveloper && place.org) || '' });
  const { page, type, q, owner } = filters;
  const [creating, setCreating] = useState(false);
  const kinds = useApi('GET /api/v1/knowledge_sources/kinds');
  const owned = ownerMember(owner);
  const query = {
    page: pageNumber(page),
    ...(type === '' ? {} : { type }),
    ...(q === '' ? {} : { name: q }),
    include: 'statistics' as const,
    ...(owned.org === undefined ? {} : { org: owned.org }),
    ...(owned.team === undefined ? {} : { team: [owned.team] }),
    ...(owned.agent === undefined ? {} : { agent: owned.agent }),
  };
  const sources = useApi('GET /api/v1/knowledge_sources', { query }, { keep: true });
  const labelOf = (name: string) => kinds.data?.data.find((kind) => kind.type === name)?.label ?? name;
  const columns: Column<KnowledgeSource>[] = [
    {
      id: 'source',
      name: 'Source',
      look: 'main',
      sort: sourceName,
      cell: (source) => <Link href={`/knowledge/${source.id}`}>{sourceName(source)}</Link>,
    },
    {
      id: 'kind',
      name: 'Kind',
      look: 'wide',
      sort: ({ type: kind }) => kind,
      cell: (one) => <span className="faint">{labelOf(one.type)}</span>,
    },
    { id: 'owner', name: 'Owner', cell: (source) => <Owner of={source} /> },
    { id: 'documents', name: 'Documents', look: 'number', cell: documentCount },
    { id: 'ingestion', name: 'Last ingestion', cell: lastIngestion },
    { id: 'state', name: 'State', sort: ({ state }) => state, cell: ({ state }) => <State value={state} /> },
    {
      id: 'created',
      name: 'Created',
      look: 'wide',
      sort: (one) => one.created_at ?? '',
      cell: (one) => <Time at={one.created_at} />,
    },
  ];
  const filtered = type !== '' || q !== '' || owner !== '';
  return (
    <>
      <PageHead title="Knowledge" lead="Sources of text that agents search by words and by meaning.">
        <Link href="/knowledge/search" className="button plain">
          Search everything
        </Link>
        <Link href="/answers" className="button plain">
          Ask a question
        </Link>
        <Button kind="primary" onClick={() => setCreating(true)}>
          New source
        </Button>
      </PageHead>
      <ErrorNotice error={kinds.error} onRetry={kinds.reload} />
      <div className="toolbar">
        <SearchField label="Search sources" value={q} onChange={(next) => change({ q: next })} />
        <select aria-label="Filter by type" value={type} onChange={(event) => change({ type: event.target.value })}>
          <option value="">All kinds</option>
          {kinds.data?.data.map((kind) => (
            <option key={kind.type} value={kind.type}>
              {kind.label}
            </option>
          ))}
        </select>
        <PrincipalPicker
          label="Owner"
          kinds={isDeveloper ? ['org', 'team', 'agent'] : ['team', 'agent']}
          any="All owners"
          value={owner}
          onChange={(next) => change({ owner: next })}
        />
      </div>
      <PagedTable
        label="Sources"
        loaded={sources}
        columns={columns}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        empty={
          filtered ? (
            <Empty title="No matching sources">No source has this name, kind and owner.</Empty>
          ) : (
            <Empty
              title="No sources yet"
              action={
                <Button kind="primary" onClick={() => setCreating(true)}>
                  Create the first source
                </Button>
              }
            >
              A source holds documents that you push, or reads a file, a page or a site by itself. Then search it here.
            </Empty>
          )
        }
      />
      {creating && kinds.data ? <NewSource kinds={kinds.data.data} onClose={() => setCreating(false)} /> : null}
    </>
  );
}

function documentCount({ statistics }: KnowledgeSource) {
  return <span className="faint">{statistics?.documents.toLocaleString('en')}</span>;
}

/** How the last ingestion of a source ended, and when it began. */
function lastIngestion({ statistics }: KnowledgeSource) {
  const last = statistics?.last_ingestion;
  if (!last) return <span className="faint">none yet</span>;
  return (
    <>
      <State value={last.status} /> <Time at={last.created_at} />
    </>
  );
}

function NewSource({ kinds, onClose }: { kinds: Kind[]; onClose: () => void }) {
  const { session, place, isDeveloper, orgs } = useSession();
  const [, navigate] = useLocation();
  const [type, setType] = useState(kinds[0]?.type ?? '');
  const [name, setName] = useState('');
  const [owner, setOwner] = useState(isDeveloper ? (place.org ?? '') : (session.user?.id ?? ''));
  const kind = kinds.find((one) => one.type === type);
  const [payload, setPayload] = useState(emptyPayload);
  const [credentials, setCredentials] = useState(emptyPayload);

  const create = useAction(
    async () => {
      const source = await call('POST /api/v1/knowledge_sources', {
        body: {
          type,
          ...ownerMember(owner),
          payload: readPayload(kind?.payload_schema ?? {}, payload),
          ...credentialsMember(kind?.credentials_schema, credentials),
          ...(name === '' ? {} : { metadata: { name } }),
        },
      });
      navigate(`/knowledge/${source.id}`);
    },
    { say: 'The source was created.', refresh: ['GET /api/v1/knowledge_sources'] },
  );

  return (
    <Dialog title="New source" onClose={onClose}>
      <Form
        submit="Create the source"
        busy={create.busy}
        error={create.error}
        shownFields={[
          ...['org', 'team', 'user', 'agent'],
          ...Object.keys(payload).map((member) => `payload.${member}`),
          ...Object.keys(credentials).map((member) => `credentials.${member}`),
        ]}
        onSubmit={() => create.run()}
        onCancel={onClose}
      >
        <fieldset className="choices">
          <legend>Kind</legend>
          {kinds.map((one) => (
            <label key={one.type}>
              <input
                type="radio"
                name="kind"
                checked={one.type === type}
                onChange={() => {
                  setType(one.type);
                  setPayload(emptyPayload);
                  setCredentials(emptyPayload);
                }}
              />
              <span>
                <strong>{one.label}</strong>
                <span className="hint">{one.description}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <Field label="Name" hint="Shown in the console. Stored in the metadata.">
          {(id, described) => (
            <input id={id} {...described} value={name} onChange={(event) => setName(event.target.value)} />
          )}
        </Field>
        {kind ? (
          <SchemaFields
            key={type}
            schema={kind.payload_schema}
            values={payload}
            error={create.error}
            onChange={setPayload}
          />
        ) : null}
        {kind?.credentials_schema ? (
          <CredentialFields
            schema={kind.credentials_schema}
            values={credentials}
            error={create.error}
            onChange={setCredentials}
          />
        ) : null}
        <Field
          label="Owner"
          hint="Who sees it: an organisation, a team, an agent or a user."
          error={fieldError(create.error, 'org', 'team', 'user', 'agent')}
        >
          {(id) => (
            <PrincipalPicker
              label="Owner"
              id={id}
              kinds={isDeveloper ? ['org', 'team', 'agent', 'user'] : ['team', 'agent']}
              any={isDeveloper ? 'Choose…' : 'Me'}
              value={owner}
              onChange={(next) => setOwner(next === '' && !isDeveloper ? (session.user?.id ?? '') : next)}
            />
          )}
        </Field>
        {isDeveloper && orgs.length === 0 ? <FirstOrg onCreated={setOwner} /> : null}
      </Form>
    </Dialog>
  );
}

/** A source needs an owner, and a new app has none yet. */
function FirstOrg({ onCreated }: { onCreated: (org: string) => void }) {
  const [name, setName] = useState('');
  const create = useAction(async () => onCreated((await call('POST /api/v1/orgs', { body: { name } })).id), {
    say: 'The organisation was created.',
    refresh: ['GET /api/v1/orgs'],
  });
  return (
    <div className="notice">
      <p>A source belongs to an organisation, a team, an agent or a user. This app has no organisation yet.</p>
      <div className="with-button">
        <input
          aria-label="Name of the organisation"
          placeholder="Name of the organisation"
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <Button busy={create.busy} disabled={name === ''} onClick={() => create.run()}>
          Create it
        </Button>
      </div>
      <ErrorNotice error={create.error} />
    </div>
  );
}
