import { Link, useLocation } from 'wouter';
import type { OperationName } from '../../api/client.ts';
import { call } from '../../api/client.ts';
import type { KnowledgeIngestion } from '../../api/generated.ts';
import { Button } from '../../ui/button.tsx';
import { Check, Circle } from '../../ui/icons.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { useAction } from '../../ui/query.ts';
import { firstSteps, Snippets } from '../../ui/snippets.tsx';
import { useTotals } from './totals.ts';

type Example = { make: () => Promise<string>; changes: OperationName[] };
type Step = { done: boolean; name: string; text: string; href: string; example?: Example };

const guide = '# Opening hours\n\nThe office is open from eight to five. On holidays, call the night desk.\n';

/** Each creates something real, which can be changed or deleted like anything else, and returns where it is. */
const examples = {
  file: {
    changes: ['GET /api/v1/files'],
    make: async () => {
      const body = { filename: 'opening-hours.md', content_type: 'text/markdown', data: btoa(guide) };
      return `/files/${(await call('POST /api/v1/files', { body })).id}`;
    },
  },
  source: {
    changes: ['GET /api/v1/orgs', 'GET /api/v1/knowledge_sources', 'GET /api/v1/knowledge_documents'],
    make: async () => {
      // A source belongs to somebody.
      const { data } = await call('GET /api/v1/orgs', { query: { page_size: 1 } });
      const org = data[0] ?? (await call('POST /api/v1/orgs', { body: { name: 'Example' } }));
      const source = await call('POST /api/v1/knowledge_sources', {
        body: { type: 'knowledge/documents', org: org.id, metadata: { name: 'Handbook' } },
      });
      const path = { source: source.id };
      const body = { content: { data: guide }, title: 'Opening hours' };
      await waitForDocument(await call('POST /api/v1/knowledge_sources/{source}/ingest', { path, body }));
      return `/knowledge/${source.id}?tab=search`;
    },
  },
  run: {
    changes: ['GET /api/v1/automations', 'GET /api/v1/automation_runs'],
    make: async () => {
      const nodes = [
        { id: 'greet', kind: 'transform', value: { text: 'Hello, {{$.name}}.' }, on_success: 'done' },
        { id: 'done', kind: 'complete', result: '{{$nodes.greet}}' },
      ];
      const workflow = { kind: 'WorkflowGraph', version: 1, start_node: 'greet', nodes };
      const automation = await call('POST /api/v1/automations', {
        body: { name: 'Greeting', type: 'invoked', workflow },
      });
      const path = { automation: automation.id };
      await call('POST /api/v1/automations/{automation}/activate', { path });
      const run = await call('POST /api/v1/automations/{automation}/invoke', {
        path,
        body: { payload: { name: 'Ada' } },
      });
      return `/runs/${run.id}`;
    },
  },
} satisfies Record<string, Example>;

const pauseMs = 250;
const triesMax = 40;

/** A search finds nothing before the ingestion has ended. If that takes long, the page of the source shows it. */
async function waitForDocument({ id }: KnowledgeIngestion): Promise<void> {
  for (let tries = 0; tries < triesMax; tries++) {
    const { status } = await call('GET /api/v1/knowledge_ingestions/{ingestion}', { path: { ingestion: id } });
    if (status !== 'pending' && status !== 'running') return;
    await new Promise((next) => setTimeout(next, pauseMs));
  }
}

/** The first steps in a new app. They disappear when all are done. */
export function Checklist() {
  const totals = useTotals();
  const steps: Step[] = [
    {
      ...{ done: (totals.files ?? 0) > 0, name: 'Upload a file', href: '/files', example: examples.file },
      text: 'PDFs, office documents, pictures and anything else',
    },
    {
      ...{ done: (totals.documents ?? 0) > 0, name: 'Make a document searchable', href: '/knowledge' },
      ...{ text: 'A source holds what your agents search', example: examples.source },
    },
    {
      ...{ done: (totals.runs ?? 0) > 0, name: 'Run an automation', href: '/automations', example: examples.run },
      text: 'Steps that survive every restart, with a journal',
    },
    {
      ...{ done: (totals.users ?? 0) > 0, name: 'Create the first user', href: '/users' },
      text: 'Each sees only what belongs to them',
    },
    {
      ...{ done: (totals.keys ?? 0) > 0, name: 'Create a secret key for your server', href: '/keys' },
      text: 'Then call the API with the client of your language',
    },
  ];
  const finished = steps.filter(({ done }) => done).length;
  if (Object.values(totals).includes(undefined) || finished === steps.length) return null;
  return (
    <section className="card" aria-label="First steps">
      <div className="toolbar">
        <h2>First steps</h2>
        <span className="faint number">
          {finished} of {steps.length}
        </span>
      </div>
      <ol className="checklist">
        {steps.map((step) => (
          <StepRow key={step.name} step={step} />
        ))}
      </ol>
      <details>
        <summary>The same from your code</summary>
        <Snippets label="Upload a file" snippets={firstSteps()} />
      </details>
    </section>
  );
}

function StepRow({ step: { done, name, text, href, example } }: { step: Step }) {
  const [, navigate] = useLocation();
  const create = useAction(async () => example && navigate(await example.make()), { refresh: example?.changes ?? [] });
  return (
    <li className={done ? 'done' : ''}>
      {done ? <Check size={16} aria-hidden="true" /> : <Circle size={16} aria-hidden="true" />}
      <span className="step">
        <Link href={href}>{name}</Link>
        <span className="hidden">{done ? ', done' : ', to do'}</span>
        <span className="faint">{text}</span>
      </span>
      {done || example === undefined ? null : (
        <Button busy={create.busy} onClick={() => create.run()}>
          Create an example<span className="hidden">: {name}</span>
        </Button>
      )}
      <ErrorNotice error={create.error} />
    </li>
  );
}
