import { useState } from 'react';
import { useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import type { Webhook } from '../../api/generated.ts';
import { Button } from '../../ui/button.tsx';
import { Id } from '../../ui/copy.tsx';
import { FormDialog } from '../../ui/form-dialog.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Details, PageHead } from '../../ui/page.tsx';
import { optimistically, refresh, useAction, useApi } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import { Shown } from '../../ui/shown.tsx';
import { Time } from '../../ui/time.tsx';
import { AutomationLinks } from './automation-choice.tsx';
import { Deliveries } from './deliveries.tsx';
import { WebhookForm } from './webhook-form.tsx';
import { WebhookSecret } from './webhook-secret.tsx';
import { EventNames, WebhookState } from './webhooks-page.tsx';

/** One webhook: its events, its secret, and the log of its deliveries. */
export function WebhookPage({ id }: { id: string }) {
  const webhook = useApi('GET /api/v1/webhooks/{webhook}', { path: { webhook: id } });
  return <Shown loaded={webhook}>{(found) => <WebhookBody webhook={found} onChange={webhook.replace} />}</Shown>;
}

function WebhookBody({ webhook, onChange }: { webhook: Webhook; onChange: (webhook: Webhook) => void }) {
  const [, navigate] = useLocation();
  const [asking, setAsking] = useState<'edit' | 'rotate'>();
  const [secret, setSecret] = useState<string>();
  const path = { webhook: webhook.id };
  const isPaused = webhook.status === 'paused';
  const wakes = webhook.automations !== undefined;
  const test = useAction(() => call('POST /api/v1/webhooks/{webhook}/test', { path }), {
    say: 'The test event is being delivered.',
    refresh: ['GET /api/v1/webhooks/{webhook}/deliveries'],
  });
  const pause = useAction(
    () =>
      optimistically<Webhook>(webhook, { ...webhook, status: isPaused ? 'active' : 'paused' }, onChange, () =>
        isPaused
          ? call('POST /api/v1/webhooks/{webhook}/resume', { path })
          : call('POST /api/v1/webhooks/{webhook}/pause', { path }),
      ),
    { say: isPaused ? 'It is active.' : 'It is paused.', refresh: ['GET /api/v1/webhooks/{webhook}/deliveries'] },
  );
  return (
    <>
      <PageHead title={webhook.url} lead={webhook.description}>
        <Button busy={test.busy} disabled={isPaused} onClick={() => test.run()}>
          Send a test event
        </Button>
        <Button busy={pause.busy} kind={isPaused ? 'primary' : 'plain'} onClick={() => pause.run()}>
          {isPaused ? 'Resume' : 'Pause'}
        </Button>
        <Button onClick={() => setAsking('rotate')}>Rotate the secret</Button>
        <Button onClick={() => setAsking('edit')}>Edit</Button>
        <DeleteButton
          title="Delete this webhook?"
          action="Delete the webhook"
          perform={async () => {
            await call('DELETE /api/v1/webhooks/{webhook}', { path });
            refresh('GET /api/v1/webhooks');
            navigate('/webhooks');
          }}
        >
          This also deletes its deliveries, pending ones included. This cannot be undone.
        </DeleteButton>
      </PageHead>
      <ErrorNotice error={test.error ?? pause.error} />
      {isPaused ? (
        <div className="notice warning" role="status">
          <p>
            <strong>{wakes ? 'The function is not woken.' : 'Nothing is delivered.'}</strong>{' '}
            {webhook.paused_reason ?? 'The webhook was paused.'}
          </p>
          <p>
            {wakes
              ? 'Runs wait. When the function works again, resume the webhook: the function is woken for all runs that wait.'
              : 'Events are kept. When the receiver works again, resume the webhook: it gets them in order.'}
          </p>
        </div>
      ) : null}
      <section className="card">
        <Details
          rows={[
            ['Status', <WebhookState key="status" webhook={webhook} />],
            ['Failing since', webhook.failing_since ? <Time key="failing" at={webhook.failing_since} /> : null],
            webhook.automations === undefined
              ? ['Events', <EventNames key="events" events={webhook.events} max={100} />]
              : ['Executes runs of', <AutomationLinks key="automations" ids={webhook.automations} />],
            [
              'Old secret valid until',
              webhook.previous_secret_until ? <Time key="previous" at={webhook.previous_secret_until} /> : null,
            ],
            ['Id', <Id key="id" id={webhook.id} />],
            ['Created', <Time key="created" at={webhook.created_at} />],
          ]}
        />
      </section>
      <Deliveries webhook={webhook} />
      {asking === 'edit' ? (
        <WebhookForm
          webhook={webhook}
          onSaved={(saved) => {
            onChange(saved);
            setAsking(undefined);
          }}
          onClose={() => setAsking(undefined)}
        />
      ) : null}
      {asking === 'rotate' ? (
        <FormDialog
          title="Rotate the secret?"
          lead="Deliveries are signed with both secrets until the old one ends: replace it at the receiver in that time."
          submit="Rotate it"
          fields={[
            { name: 'overlap', label: 'How long the old secret stays valid', kind: 'select', options: overlaps },
          ]}
          initial={{ overlap: overlaps[0]?.[0] }}
          onSubmit={async ({ overlap }) => {
            const body = { overlap_seconds: Number(overlap) };
            const { secret: next, ...rotated } = await call('POST /api/v1/webhooks/{webhook}/rotate_secret', {
              path,
              body,
            });
            onChange(rotated);
            setSecret(next);
          }}
          onClose={() => setAsking(undefined)}
        />
      ) : null}
      {secret === undefined ? null : (
        <WebhookSecret title="The new secret" secret={secret} wakes={wakes} onClose={() => setSecret(undefined)} />
      )}
    </>
  );
}

const overlaps: [seconds: string, name: string][] = [
  ['86400', 'A day'],
  ['3600', 'An hour'],
  ['604800', 'A week'],
  ['0', 'Not at all, because it has leaked'],
];
