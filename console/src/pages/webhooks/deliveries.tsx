import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { Webhook, WebhookDelivery } from '../../api/generated.ts';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Id } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { duration } from '../../ui/format.ts';
import { Live } from '../../ui/live.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Empty } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { useAction, useApi } from '../../ui/query.ts';
import { SearchField } from '../../ui/search-field.tsx';
import { State } from '../../ui/state.tsx';
import { type Column, DataTable } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

const deliveriesPath = 'GET /api/v1/webhooks/{webhook}/deliveries';
const firstPollMs = 1_000;
/** A message that wakes a function. Its claim is offered once. */
const wakeEvent = 'automation_run.ready';
type Attempt = WebhookDelivery['log'][number];
type DeliveryState = WebhookDelivery['state'];

/** The live log of deliveries, newest event first. */
export function Deliveries({ webhook }: { webhook: Webhook }) {
  const [{ page, state, type }, change] = useFilters({ page: '1', state: '', type: '' });
  const [opened, setOpened] = useState<WebhookDelivery>();
  const query = {
    page: pageNumber(page),
    ...(state === '' ? {} : { state: state as DeliveryState }),
    ...(type === '' ? {} : { type }),
  };
  const path = { webhook: webhook.id };
  const deliveries = useApi(deliveriesPath, { path, query }, { keep: true, poll: () => firstPollMs });
  const redeliver = useAction(
    (delivery: WebhookDelivery) =>
      call('POST /api/v1/webhooks/{webhook}/deliveries/{delivery}/redeliver', {
        path: { ...path, delivery: delivery.id },
      }),
    { say: 'The event is delivered again.', refresh: [deliveriesPath] },
  );
  const isFiltered = state !== '' || type !== '';
  return (
    <section>
      <div className="toolbar">
        <h2>Deliveries</h2>
        <SearchField
          label="Deliveries of this event"
          placeholder="Name of an event"
          value={type}
          onChange={(next) => change({ type: next.trim() })}
        />
        <select aria-label="Filter by state" value={state} onChange={(event) => change({ state: event.target.value })}>
          <option value="">All states</option>
          <option value="pending">Pending</option>
          <option value="delivered">Delivered</option>
          <option value="failed">Failed</option>
        </select>
        <Live error={deliveries.error} />
      </div>
      <ErrorNotice error={redeliver.error} />
      <PagedTable
        label="Deliveries"
        loaded={deliveries}
        columns={columnsOf({
          isPaused: webhook.status === 'paused',
          onOpen: setOpened,
          onRedeliver: (delivery) => void redeliver.run(delivery),
        })}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        empty={
          <Empty title={isFiltered ? 'No matching deliveries' : 'No deliveries yet'}>
            {isFiltered
              ? 'No delivery has this state and this event.'
              : 'Press “Send a test event”, or wait for the first event. Deliveries are kept for seven days.'}
          </Empty>
        }
      />
      {opened ? <Attempts delivery={opened} onClose={() => setOpened(undefined)} /> : null}
    </section>
  );
}

function columnsOf({
  isPaused,
  onOpen,
  onRedeliver,
}: {
  isPaused: boolean;
  onOpen: (delivery: WebhookDelivery) => void;
  onRedeliver: (delivery: WebhookDelivery) => void;
}): Column<WebhookDelivery>[] {
  return [
    { id: 'type', name: 'Event', look: 'main', sort: ({ type }) => type, cell: ({ type }) => type },
    {
      id: 'sequence',
      name: 'Number',
      look: 'number',
      sort: ({ sequence }) => sequence,
      cell: ({ sequence }) => sequence.toLocaleString('en'),
    },
    { id: 'event', name: 'Id', look: 'wide', cell: ({ event }) => <Id id={event} label={`…${event.slice(-6)}`} /> },
    { id: 'state', name: 'State', sort: ({ state }) => state, cell: ({ state }) => <State value={state} /> },
    {
      id: 'response',
      name: 'Last response',
      cell: ({ log, attempts, next_attempt_at }) => (
        <>
          <Outcome attempt={log.at(-1)} />
          {next_attempt_at === undefined || attempts === 0 ? null : (
            <span className="faint">
              {' '}
              · next attempt <Time at={next_attempt_at} />
            </span>
          )}
        </>
      ),
    },
    { id: 'created', name: 'Created', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
    {
      id: 'actions',
      name: 'Actions',
      look: 'actions',
      cell: (delivery) => (
        <>
          <Button
            kind="quiet"
            aria-label={`Attempts ${delivery.attempts}, of event number ${delivery.sequence}`}
            disabled={delivery.log.length === 0}
            onClick={() => onOpen(delivery)}
          >
            Attempts {delivery.attempts}
          </Button>
          {delivery.type === wakeEvent ? null : (
            <Button
              kind="quiet"
              aria-label={`Deliver again event number ${delivery.sequence}`}
              disabled={isPaused}
              onClick={() => onRedeliver(delivery)}
            >
              Deliver again
            </Button>
          )}
        </>
      ),
    },
  ];
}

function Outcome({ attempt }: { attempt: Attempt | undefined }) {
  if (attempt === undefined) return <span className="faint">none yet</span>;
  const { status, error } = attempt;
  return (
    <>
      {status ?? ''} {error ? <span className="faint">{error.code.replaceAll('_', ' ')}</span> : null}
    </>
  );
}

const attemptColumns: Column<Attempt>[] = [
  { id: 'at', name: 'When', look: 'main', sort: ({ at }) => at, cell: ({ at }) => <Time at={at} /> },
  { id: 'status', name: 'Status', look: 'number', cell: ({ status }) => status ?? '–' },
  {
    id: 'took',
    name: 'Took',
    look: 'number',
    sort: (one) => one.duration_ms,
    cell: (one) => duration(one.duration_ms),
  },
  {
    id: 'error',
    name: 'Error',
    cell: ({ error }) =>
      error ? (
        <>
          <code>{error.code}</code> <span className="faint">{error.message}</span>
        </>
      ) : (
        <span className="faint">–</span>
      ),
  },
];

function Attempts({ delivery, onClose }: { delivery: WebhookDelivery; onClose: () => void }) {
  return (
    <Dialog title={`Attempts to deliver ${delivery.type}`} onClose={onClose} wide>
      <p className="faint">
        Event <code>{delivery.event}</code> · the latest {delivery.log.length} of {delivery.attempts}
      </p>
      <DataTable label="Attempts" columns={attemptColumns} rows={delivery.log} rowId={({ at }) => at} />
    </Dialog>
  );
}
