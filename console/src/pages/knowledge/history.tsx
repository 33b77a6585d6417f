import { useState } from 'react';
import { call, type Result } from '../../api/client.ts';
import type { KnowledgeSource } from '../../api/generated.ts';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Confirm, Form } from '../../ui/dialog.tsx';
import { Field, fieldError } from '../../ui/field.tsx';
import { count } from '../../ui/format.ts';
import { NumberField } from '../../ui/number-field.tsx';
import { Empty } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { useAction, useApi } from '../../ui/query.ts';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { useUnsaved } from '../../ui/unsaved.ts';
import { documentName } from './document-name.ts';
import { ReadVersion, RestoreVersion, type Version } from './versions.tsx';

const plan = 'GET /api/v1/knowledge_sources/{source}/restore';
type Plan = Result<typeof plan>;

/** What a source was: a form that brings it back to a time, and its deleted documents. */
export function History({
  source,
  pulls,
  onStarted,
}: {
  source: KnowledgeSource;
  pulls: boolean;
  onStarted: () => void;
}) {
  return (
    <div className="stack">
      <RestoreSource source={source} pulls={pulls} onStarted={onStarted} />
      <section className="stack" aria-labelledby="deleted-documents">
        <h2 id="deleted-documents">Deleted documents</h2>
        <DeletedDocuments source={source.id} />
      </section>
    </div>
  );
}

function RestoreSource({
  source: { id, versions_from },
  pulls,
  onStarted,
}: {
  source: KnowledgeSource;
  pulls: boolean;
  onStarted: () => void;
}) {
  const [at, setAt] = useState('');
  const [planned, setPlanned] = useState<Plan>();
  const path = { source: id };
  const look = useAction(async () => {
    setPlanned(undefined);
    setPlanned(await call(plan, { path, query: { at: new Date(at).toISOString() } }));
  });
  return (
    <section className="card">
      <h2>Restore the source</h2>
      <Form
        quiet
        submit="Show what would change"
        busy={look.busy}
        error={look.error}
        shownFields={['at']}
        onSubmit={() => look.run()}
      >
        <Field
          label="To the time"
          error={fieldError(look.error, 'at')}
          hint={
            <>
              Each document gets the version that it had then. Versions are kept since{' '}
              {new Date(versions_from ?? '').toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })}.
              {pulls ? ' The next pull may change documents again: pause the source first.' : ''}
            </>
          }
        >
          {(field, described) => (
            <input
              id={field}
              {...described}
              type="datetime-local"
              step="any"
              required
              value={at}
              onChange={(event) => {
                setAt(event.target.value);
                setPlanned(undefined);
              }}
            />
          )}
        </Field>
      </Form>
      {planned ? <Planned source={id} plan={planned} onStarted={onStarted} /> : null}
    </section>
  );
}

function Planned({
  source,
  plan: { at, changed, created, deleted, unknown },
  onStarted,
}: {
  source: string;
  plan: Plan;
  onStarted: () => void;
}) {
  const [asking, setAsking] = useState(false);
  const restore = useAction(
    async () => {
      // The person has read how many documents would be deleted.
      const body = { at, confirm_deletions: deleted > 0 };
      await call('POST /api/v1/knowledge_sources/{source}/restore', { path: { source }, body });
      onStarted();
    },
    { say: 'The source is being restored.' },
  );
  const changes = `${count(changed, 'document')} changed, ${created.toLocaleString('en')} brought back, ${deleted.toLocaleString('en')} deleted`;
  const isNothing = changed + created + deleted === 0;
  return (
    <>
      <p role="status">
        {isNothing ? 'Nothing would change.' : `${changes}.`}
        {unknown > 0 ? ` ${count(unknown, 'document')} of that time can no longer be restored.` : ''}
      </p>
      {isNothing ? null : (
        <div>
          <Button kind="danger" onClick={() => setAsking(true)}>
            Restore the source…
          </Button>
        </div>
      )}
      {asking ? (
        <Confirm
          title="Restore the source?"
          action="Restore it"
          busy={restore.busy}
          error={restore.error}
          onClose={() => setAsking(false)}
          onConfirm={async () => {
            if (await restore.run()) setAsking(false);
          }}
        >
          {changes}. What the documents are now stays among their versions, so you can come back to it.
        </Confirm>
      ) : null}
    </>
  );
}

const deletedColumns: Column<Version>[] = [
  {
    id: 'title',
    name: 'Title',
    look: 'main',
    cell: (one) => documentName(one, one.document),
  },
  { id: 'lines', name: 'Lines', look: 'number', cell: ({ total_lines }) => total_lines.toLocaleString('en') },
  { id: 'deleted', name: 'Deleted', cell: ({ deleted_at }) => <Time at={deleted_at} /> },
  {
    id: 'actions',
    name: 'Actions',
    look: 'actions',
    cell: (one) => (
      <>
        <ReadVersion version={one} />
        <RestoreVersion version={one} />
      </>
    ),
  },
];

function DeletedDocuments({ source }: { source: string }) {
  const [{ page }, change] = useFilters({ page: '1' });
  const loaded = useApi(
    'GET /api/v1/knowledge_sources/{source}/deleted_documents',
    { path: { source }, query: { page: pageNumber(page) } },
    { keep: true },
  );
  return (
    <PagedTable
      label="Deleted documents"
      loaded={loaded}
      columns={deletedColumns}
      rowId={({ document }) => document}
      onPage={(next) => change({ page: String(next) })}
      empty={
        <Empty title="No deleted documents">
          Documents that are deleted stay here for as long as old versions are kept.
        </Empty>
      }
    />
  );
}

/** For how long the source keeps old versions. */
export function VersionsSetting({
  source,
  onChange,
}: {
  source: KnowledgeSource;
  onChange: (source: KnowledgeSource) => void;
}) {
  const saved = source.version_retention_days?.toString() ?? '';
  const [days, setDays] = useState(saved);
  useUnsaved(days !== saved);
  const save = useAction(
    async () => {
      const body = { version_retention_days: days === '' ? null : Number(days) };
      onChange(await call('PATCH /api/v1/knowledge_sources/{source}', { path: { source: source.id }, body }));
    },
    { say: 'Saved.' },
  );
  return (
    <section className="card">
      <Form
        quiet
        submit="Save the retention"
        busy={save.busy}
        error={save.error}
        shownFields={['version_retention_days']}
        onSubmit={() => save.run()}
      >
        <NumberField
          label="Keep old versions for"
          unit="days"
          error={fieldError(save.error, 'version_retention_days')}
          hint="Documents can be read as they were, and restored, for this long after they were changed or deleted. If it is empty, no versions are kept, and those that there are become unreadable."
          min={1}
          max={3650}
          value={days}
          onChange={setDays}
        />
      </Form>
    </section>
  );
}
