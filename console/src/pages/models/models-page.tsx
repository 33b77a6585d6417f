import { type ReactNode, useState } from 'react';
import type { Item } from '../../api/client.ts';
import { call } from '../../api/client.ts';
import type { CreateModelRequest } from '../../api/generated.ts';
import { useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { type FieldSpec, FormDialog } from '../../ui/form-dialog.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import { Shown } from '../../ui/shown.tsx';
import { type Column, DataTable } from '../../ui/table.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Time } from '../../ui/time.tsx';
import { toast } from '../../ui/toast.tsx';
import { Budgets } from './budgets.tsx';
import { Calls } from './calls.tsx';
import { ModelUse } from './model-use.tsx';

type Tab = 'models' | 'calls' | 'usage' | 'budgets';
type Available = Item<'GET /api/v1/available_models'>;
type Model = Item<'GET /api/v1/models'>;

/** The language models of the app, what was asked of them, what it cost, and what limits it. */
export function ModelsPage() {
  const [{ tab }, change] = useFilters({ tab: 'models' });
  const [adding, setAdding] = useState(false);
  const add = (
    <Button kind="primary" onClick={() => setAdding(true)}>
      New model
    </Button>
  );
  return (
    <>
      <PageHead title="Language models" lead="What generates text for automations and extractions, and what it costs.">
        {add}
      </PageHead>
      <Tabs<Tab>
        label="Parts of the language models"
        value={tab as Tab}
        onChange={(next) => change({ tab: next })}
        tabs={[
          { id: 'models', name: 'Models', panel: <Models add={add} /> },
          { id: 'calls', name: 'Calls', panel: <Calls /> },
          { id: 'usage', name: 'Usage', panel: <ModelUse /> },
          { id: 'budgets', name: 'Budgets', panel: <Budgets /> },
        ]}
      />
      {adding ? <NewModel onClose={() => setAdding(false)} /> : null}
    </>
  );
}

/** Prices are stored in millionths for a million tokens. */
const price = (millionths: number) => (millionths / 1_000_000).toLocaleString('en', { maximumFractionDigits: 4 });

const availableColumns: Column<Available>[] = [
  {
    id: 'name',
    name: 'Name',
    look: 'main',
    sort: ({ name }) => name,
    cell: ({ name, is_default }) => (
      <>
        {name} {is_default ? <span className="badge">default</span> : null}
      </>
    ),
  },
  {
    id: 'kind',
    name: 'Kind',
    cell: ({ kind, from }) => (
      <span className="faint">
        {kind === 'alias' ? 'Alias' : from === 'app' ? 'Model of the app' : 'Model of the operator'}
      </span>
    ),
  },
  { id: 'model', name: 'Is', cell: ({ model, models }) => models?.join(', ') ?? model ?? '–' },
  {
    id: 'provider',
    name: 'Provider',
    look: 'wide',
    cell: ({ provider }) => <span className="faint">{provider ?? '–'}</span>,
  },
  {
    id: 'context',
    name: 'Context',
    look: 'number',
    cell: ({ context_tokens }) => context_tokens?.toLocaleString('en') ?? '–',
  },
  { id: 'input', name: 'Input', look: 'number', cell: ({ prices }) => (prices ? price(prices.input) : '–') },
  { id: 'output', name: 'Output', look: 'number', cell: ({ prices }) => (prices ? price(prices.output) : '–') },
];

const ownColumns: Column<Model>[] = [
  { id: 'name', name: 'Name', look: 'main', sort: ({ name }) => name, cell: ({ name }) => name },
  { id: 'model', name: 'Model', cell: ({ model }) => <code>{model}</code> },
  { id: 'url', name: 'Address', look: 'wide', cell: ({ url }) => <span className="faint">{url}</span> },
  { id: 'key', name: 'Key', cell: ({ has_key }) => (has_key ? 'Stored' : '–') },
  { id: 'changed', name: 'Changed', sort: (one) => one.updated_at, cell: (one) => <Time at={one.updated_at} /> },
  {
    id: 'actions',
    name: 'Actions',
    look: 'actions',
    cell: ({ id, name }) => (
      <>
        <TryButton id={id} name={name} />
        <DeleteButton
          title={`Delete the model ${name}?`}
          action="Delete the model"
          quiet={name}
          perform={async () => {
            await call('DELETE /api/v1/models/{model}', { path: { model: id } });
            refresh('GET /api/v1/models', 'GET /api/v1/available_models');
          }}
        >
          Automations that name it fail until they name another one. Records of its calls stay.
        </DeleteButton>
      </>
    ),
  },
];

/** Makes one small call of a model, and says what happened. */
function TryButton({ id, name }: { id: string; name: string }) {
  const [busy, setBusy] = useState(false);
  const tryIt = async () => {
    setBusy(true);
    try {
      const { ok, message, latency_ms } = await call('POST /api/v1/models/{model}/test', { path: { model: id } });
      toast(ok ? `${name} works: ${latency_ms} ms.` : `${name} does not work. ${message ?? ''}`, ok ? 'good' : 'bad');
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'bad');
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button kind="quiet" busy={busy} aria-label={`Try ${name}`} onClick={tryIt}>
      Try
    </Button>
  );
}

function Models({ add }: { add: ReactNode }) {
  const available = useApi('GET /api/v1/available_models');
  const [{ page }, change] = useFilters({ page: '1' });
  const own = useApi('GET /api/v1/models', { query: { page: Number(page) || 1 } }, { keep: true });
  const hasNone = available.data?.data.length === 0 && own.data?.data.length === 0;
  return (
    <>
      <section className="stack">
        <div>
          <h2>Available</h2>
          <p className="faint">What a generate node may name. Prices are for a million tokens, in your currency.</p>
        </div>
        <Shown loaded={available}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty title="No language model yet" action={add}>
                Add one with its key, or set QUARRY_LLM_URL and QUARRY_LLM_MODEL for the whole server.
              </Empty>
            ) : (
              <DataTable label="Available models" columns={availableColumns} rows={data} rowId={({ name }) => name} />
            )
          }
        </Shown>
      </section>
      {hasNone ? null : (
        <section className="stack">
          <h2>Models of this app</h2>
          <PagedTable
            label="Models of this app"
            loaded={own}
            columns={ownColumns}
            rowId={({ id }) => id}
            onPage={(next) => change({ page: String(next) })}
            empty={<Empty title="None of its own">The app uses the models of the server.</Empty>}
          />
        </section>
      )}
    </>
  );
}

const embeddingFields: FieldSpec[] = [
  {
    ...{ name: 'dimensions', label: 'Dimensions', kind: 'number', required: true },
    hint: 'How many numbers a vector has.',
  },
  {
    ...{ name: 'query_prefix', label: 'Text before a question (optional)' },
    hint: 'If the model expects one, such as “query: ”, with its spaces.',
  },
  {
    ...{ name: 'passage_prefix', label: 'Text before a passage (optional)' },
    hint: 'If the model expects one, such as “passage: ”, with its spaces.',
  },
  {
    ...{ name: 'query_input_type', label: 'Input type of a question (optional)' },
    hint: 'If the service takes one: “query” for Voyage.',
  },
  {
    ...{ name: 'passage_input_type', label: 'Input type of a passage (optional)' },
    hint: 'If the service takes one: “document” for Voyage.',
  },
  {
    ...{ name: 'fusion_weight', label: 'Weight in hybrid search (optional)', kind: 'number' },
    ...{ isDecimal: true, min: 0.01, max: 10 },
    hint: 'Of its ranking beside the text, which has 1. A weak model needs less, such as 0.1.',
  },
].map((field) => ({ ...field, when: ({ kind }) => kind === 'embedding' }) as FieldSpec);

function NewModel({ onClose }: { onClose: () => void }) {
  return (
    <FormDialog
      title="New model"
      submit="Create the model"
      fields={[
        { name: 'name', label: 'Name', required: true, hint: 'How nodes, sources and searches call it.' },
        {
          ...{ name: 'kind', label: 'Kind', kind: 'select' },
          options: [
            ['', 'Chat: writes text'],
            ['embedding', 'Embedding: vectors of sources'],
            ['rerank', 'Rerank: order of search results'],
          ],
        },
        {
          ...{ name: 'provider', label: 'Provider', kind: 'select' },
          options: [
            ['openai', 'OpenAI, or compatible'],
            ['anthropic', 'Anthropic'],
            ['google', 'Google'],
            ['cohere', 'Cohere: embedding and rerank'],
          ],
        },
        { name: 'model', label: 'Model', required: true, hint: 'As its provider names it.' },
        ...embeddingFields,
        { name: 'url', label: 'Address (optional)', hint: 'Only for a server of your own.' },
        { name: 'key', label: 'Key (optional)', kind: 'password', hint: 'Stored encrypted. It is never shown again.' },
      ]}
      initial={{ provider: 'openai' }}
      onSubmit={async (body) => {
        await call('POST /api/v1/models', { body: body as CreateModelRequest });
        refresh('GET /api/v1/models', 'GET /api/v1/available_models');
      }}
      onClose={onClose}
    />
  );
}
