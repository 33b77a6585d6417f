import { useState } from 'react';
import { Link } from 'wouter';
import type { Webhook } from '../../api/generated.ts';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Id } from '../../ui/copy.tsx';
import { count } from '../../ui/format.ts';
import { Empty, PageHead } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { useApi } from '../../ui/query.ts';
import { State } from '../../ui/state.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { WebhookForm } from './webhook-form.tsx';
import { WebhookSecret } from './webhook-secret.tsx';

const columns: Column<Webhook>[] = [
  {
    id: 'url',
    name: 'URL',
    look: 'main',
    sort: ({ url }) => url,
    cell: ({ id, url, description }) => (
      <>
        <Link href={`/webhooks/${id}`}>{url}</Link>
        {description === undefined ? null : <span className="faint"> · {description}</span>}
      </>
    ),
  },
  {
    id: 'events',
    name: 'Receives',
    cell: ({ events, automations }) =>
      automations === undefined ? (
        <EventNames events={events} max={3} />
      ) : (
        `runs of ${count(automations.length, 'automation')}`
      ),
  },
  { id: 'status', name: 'Status', sort: ({ status }) => status, cell: (webhook) => <WebhookState webhook={webhook} /> },
  { id: 'id', name: 'Id', look: 'wide', cell: ({ id }) => <Id id={id} label={`…${id.slice(-6)}`} /> },
  { id: 'created', name: 'Created', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
];

/** The URLs that receive events of the app. */
export function WebhooksPage() {
  const [{ page }, change] = useFilters({ page: '1' });
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState<Webhook>();
  const webhooks = useApi('GET /api/v1/webhooks', { query: { page: pageNumber(page) } }, { keep: true });
  const create = (
    <Button kind="primary" onClick={() => setCreating(true)}>
      New webhook
    </Button>
  );
  return (
    <>
      <PageHead title="Webhooks" lead="Your URLs that receive events, and functions that execute workflows in code.">
        {create}
      </PageHead>
      <PagedTable
        label="Webhooks"
        loaded={webhooks}
        columns={columns}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        empty={
          <Empty title="No webhooks yet" action={create}>
            Enter a URL and choose its events. Each is signed, retried for three days, and listed with the responses.
          </Empty>
        }
      />
      {creating ? (
        <WebhookForm
          onSaved={(webhook) => {
            setCreating(false);
            setMade(webhook);
          }}
          onClose={() => setCreating(false)}
        />
      ) : null}
      {made?.secret === undefined ? null : (
        <WebhookSecret
          title="The secret"
          secret={made.secret}
          wakes={made.automations !== undefined}
          onClose={() => setMade(undefined)}
        />
      )}
    </>
  );
}

/** @param max how many events are named; the others are counted */
export function EventNames({ events, max }: { events: string[]; max: number }) {
  if (events.includes('*')) return <>all events</>;
  const more = events.length - max;
  return (
    <span className="names">
      {events.slice(0, max).map((name) => (
        <code key={name}>{name}</code>
      ))}
      {more > 0 ? <span className="faint">and {more} more</span> : null}
    </span>
  );
}

export function WebhookState({ webhook: { status, failing_since } }: { webhook: Webhook }) {
  if (status === 'active' && failing_since !== undefined) return <State value="failed" label="failing" />;
  return <State value={status} />;
}
