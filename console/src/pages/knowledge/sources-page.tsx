import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { call, type Item } from '../../api/client.ts';
import type { KnowledgeSource } from '../../api/generated.ts';
import { useSession } from '../../session.tsx';
import {
  Button,
  Empty,
  ErrorNotice,
  Field,
  fieldError,
  PageHead,
  Pager,
  Shown,
  State,
  Table,
  Time,
} from '../../ui/basics.tsx';
import { Dialog, Form } from '../../ui/dialog.tsx';
import { useAction, useLoad } from '../../ui/use-load.ts';
import { emptyPayload, readPayload, SchemaFields } from './schema-form.tsx';

type Kind = Item<'GET /api/v1/knowledge_sources/kinds'>;

/** All knowledge sources, and the form for a new one. */
export function SourcesPage() {
  const { place, isDeveloper } = useSession();
  const [page, setPage] = useState(1);
  const [type, setType] = useState('');
  const [creating, setCreating] = useState(false);
  const org = isDeveloper && place.org !== undefined ? { org: place.org } : {};
  const kinds = useLoad('kinds', () => call('GET /api/v1/knowledge_sources/kinds'));
  const sources = useLoad(`${page}/${type}`, () =>
    call('GET /api/v1/knowledge_sources', { query: { page, ...org, ...(type === '' ? {} : { type }) } }),
  );
  const labelOf = (name: string) => kinds.data?.data.find((kind) => kind.type === name)?.label ?? name;
  return (
    <>
      <PageHead title="Knowledge" lead="Sources of text that agents search by words and by meaning.">
        <Button kind="primary" onClick={() => setCreating(true)}>
          New source
        </Button>
      </PageHead>
      <ErrorNotice error={kinds.error} onRetry={kinds.reload} />
      <div className="toolbar">
        <select
          aria-label="Which sources"
          value={type}
          onChange={(event) => {
            setPage(1);
            setType(event.target.value);
          }}
        >
          <option value="">All kinds</option>
          {kinds.data?.data.map((kind) => (
            <option key={kind.type} value={kind.type}>
              {kind.label}
            </option>
          ))}
        </select>
      </div>
      <Shown loaded={sources}>
        {(list) =>
          list.data.length === 0 ? (
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
          ) : (
            <>
              <Table columns={['Source', 'Kind', 'State', 'Created']}>
                {list.data.map((source) => (
                  <tr key={source.id}>
                    <td className="main">
                      <Link href={`/knowledge/${source.id}`}>{sourceName(source)}</Link>
                    </td>
                    <td className="faint">{labelOf(source.type)}</td>
                    <td>
                      <State value={source.state} />
                    </td>
                    <td>
                      <Time at={source.created_at} />
                    </td>
                  </tr>
                ))}
              </Table>
              <Pager page={list} onPage={setPage} />
            </>
          )
        }
      </Shown>
      {creating && kinds.data ? <NewSource kinds={kinds.data.data} onClose={() => setCreating(false)} /> : null}
    </>
  );
}

/** A source has no name: shows the name in its metadata, what it reads, or its id. */
export function sourceName(source: KnowledgeSource): string {
  const name = source.metadata?.name ?? source.payload?.url ?? source.payload?.file;
  return typeof name === 'string' ? name : source.id;
}

function NewSource({ kinds, onClose }: { kinds: Kind[]; onClose: () => void }) {
  const { session, place, isDeveloper, orgs } = useSession();
  const [, navigate] = useLocation();
  const [type, setType] = useState(kinds[0]?.type ?? '');
  const [name, setName] = useState('');
  const [owner, setOwner] = useState(isDeveloper ? (place.org ?? '') : (session.user?.id ?? ''));
  const kind = kinds.find((one) => one.type === type);
  const [payload, setPayload] = useState(emptyPayload);
  const teams = useLoad('teams', () => call('GET /api/v1/teams', { query: { page_size: 100 } }));
  const agents = useLoad('agents', () => call('GET /api/v1/agents', { query: { page_size: 100 } }));

  const create = useAction(async () => {
    const made = await call('POST /api/v1/knowledge_sources', {
      body: {
        type,
        ...ownerMember(owner),
        payload: readPayload(kind?.payload_schema ?? {}, payload),
        ...(name === '' ? {} : { metadata: { name } }),
      },
    });
    navigate(`/knowledge/${made.id}`);
  });

  return (
    <Dialog title="New source" onClose={onClose}>
      <Form
        submit="Create the source"
        busy={create.busy}
        error={create.error}
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
        <Field label="Owner" error={fieldError(create.error, 'org', 'team', 'user', 'agent')}>
          {(id, described) => (
            <select id={id} {...described} required value={owner} onChange={(event) => setOwner(event.target.value)}>
              <option value="">Choose</option>
              {session.user ? <option value={session.user.id}>Me</option> : null}
              {orgs.map((one) => (
                <option key={one.id} value={one.id}>
                  Organisation {one.name}
                </option>
              ))}
              {teams.data?.data.map((one) => (
                <option key={one.id} value={one.id}>
                  Team {one.name}
                </option>
              ))}
              {agents.data?.data.map((one) => (
                <option key={one.id} value={one.id}>
                  Agent {one.name}
                </option>
              ))}
            </select>
          )}
        </Field>
        {isDeveloper && orgs.length === 0 && !teams.data?.data.length && !agents.data?.data.length ? (
          <FirstOrg onMade={setOwner} />
        ) : null}
      </Form>
    </Dialog>
  );
}

/** A source needs an owner, and a new app has none yet. */
function FirstOrg({ onMade }: { onMade: (org: string) => void }) {
  const { addOrg } = useSession();
  const [name, setName] = useState('');
  const create = useAction(async () => onMade((await addOrg(name)).id));
  return (
    <div className="notice">
      <p>A source belongs to an organisation, a team, an agent or a user, and this app has none yet.</p>
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

function ownerMember(id: string): { org?: string; team?: string; agent?: string; user?: string } {
  if (id.startsWith('org_')) return { org: id };
  if (id.startsWith('usr_')) return { user: id };
  if (id.startsWith('agt_')) return { agent: id };
  return id === '' ? {} : { team: id };
}
