import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { Webhook } from '../../api/generated.ts';
import { Dialog, Form } from '../../ui/dialog.tsx';
import { Field, fieldError } from '../../ui/field.tsx';
import { refresh, useAction } from '../../ui/query.ts';
import { EventChoice, eventsOf, readChosen } from './event-choice.tsx';

/** The form for a new webhook, or for changing `webhook`. */
export function WebhookForm({
  webhook,
  onSaved,
  onClose,
}: {
  webhook?: Webhook;
  onSaved: (webhook: Webhook) => void;
  onClose: () => void;
}) {
  const [url, setUrl] = useState(webhook?.url ?? '');
  const [description, setDescription] = useState(webhook?.description ?? '');
  const [chosen, setChosen] = useState(() => readChosen(webhook?.events ?? []));
  // Those that wake a function have automations instead of events.
  const wakes = webhook?.automations !== undefined;
  const save = useAction(async () => {
    const body = { url, ...(wakes ? {} : { events: eventsOf(chosen) }) };
    onSaved(
      webhook
        ? await call('PATCH /api/v1/webhooks/{webhook}', {
            path: { webhook: webhook.id },
            body: { ...body, description: description === '' ? null : description },
          })
        : await call('POST /api/v1/webhooks', { body: { ...body, ...(description === '' ? {} : { description }) } }),
    );
    refresh('GET /api/v1/webhooks');
  });
  return (
    <Dialog title={webhook ? 'Edit the webhook' : 'New webhook'} onClose={onClose}>
      <Form
        submit={webhook ? 'Save' : 'Create the webhook'}
        busy={save.busy}
        error={save.error}
        shownFields={['url', 'events', 'description']}
        onSubmit={() => save.run()}
        onCancel={onClose}
      >
        <Field label="URL" hint="Receives each event as a signed POST request." error={fieldError(save.error, 'url')}>
          {(id, described) => (
            <input
              id={id}
              {...described}
              type="url"
              required
              placeholder="https://example.com/webhooks/quarry"
              value={url}
              onChange={(event) => setUrl(event.target.value)}
            />
          )}
        </Field>
        <Field label="Description" error={fieldError(save.error, 'description')}>
          {(id, described) => (
            <input
              id={id}
              {...described}
              value={description}
              onChange={(event) => setDescription(event.target.value)}
            />
          )}
        </Field>
        {wakes ? null : <EventChoice value={chosen} error={fieldError(save.error, 'events')} onChange={setChosen} />}
      </Form>
    </Dialog>
  );
}
