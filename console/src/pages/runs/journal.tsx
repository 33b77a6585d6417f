import { useState } from 'react';
import type { WorkflowJournalEntry } from '../../api/generated.ts';
import { Button } from '../../ui/button.tsx';
import { Json } from '../../ui/code.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Empty } from '../../ui/page.tsx';
import './journal.css';
import type { Journal } from './use-journal.ts';

const entriesShown = 200;

/** The journal's entries, for all nodes or for one. */
export function Timeline({ journal, node, onAll }: { journal: Journal; node: string | undefined; onAll: () => void }) {
  const [most, setMost] = useState(entriesShown);
  const entries = node === undefined ? journal.entries : journal.entries.filter((entry) => entry.node_id === node);
  return (
    <section className="card" aria-label="Journal">
      <div className="toolbar">
        <h2>{node === undefined ? 'Journal' : `Journal of ${node}`}</h2>
        {node === undefined ? null : <Button onClick={onAll}>Show all</Button>}
      </div>
      <ErrorNotice error={journal.error} />
      {entries.length === 0 && journal.about !== undefined ? (
        <Empty title="No entries yet">
          {journal.about === null
            ? 'Runs that an external worker executes have no journal.'
            : 'Entries appear here as they are written.'}
        </Empty>
      ) : null}
      <ol className="journal">
        {entries.slice(0, most).map((entry) => (
          <Entry key={entry.id} entry={entry} />
        ))}
      </ol>
      {entries.length > most ? (
        <Button onClick={() => setMost(most + entriesShown)}>Show more of {entries.length} entries</Button>
      ) : null}
    </section>
  );
}

function Entry({ entry: { sequence, type, node_id, record, created_at } }: { entry: WorkflowJournalEntry }) {
  const [open, setOpen] = useState(false);
  const metadata = (record.metadata ?? {}) as { attempt?: number; duration_ms?: number };
  return (
    <li className={toneOf(type)}>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span className="sequence">{sequence}</span>
          <span className="what">
            {type.replaceAll('_', ' ')} {node_id === undefined ? null : <code>{node_id}</code>}
          </span>
          <span className="faint">
            {metadata.attempt !== undefined && metadata.attempt > 1 ? `attempt ${metadata.attempt} · ` : ''}
            {metadata.duration_ms === undefined ? '' : `${Math.round(metadata.duration_ms)} ms · `}
            <time dateTime={created_at} title={new Date(created_at).toLocaleString()}>
              {new Date(created_at).toLocaleTimeString('en-GB')}
            </time>
          </span>
        </summary>
        {open ? <Json value={record} label={`Entry ${sequence}`} /> : null}
      </details>
    </li>
  );
}

function toneOf(type: string): string {
  if (/failed|timed_out|cancel/.test(type)) return 'bad';
  return /completed|received|fired|ended/.test(type) ? 'good' : 'active';
}
