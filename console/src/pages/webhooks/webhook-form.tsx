import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { Webhook } from '../../api/generated.ts';
import { Dialog, Form } from '../../ui/dialog.tsx';
import { Field, fieldError } from '../../ui/field.tsx';
import { refresh, useAction } from '../../ui/query.ts';
import { AutomationChoice } from './automation-choice.tsx';
import { EventChoice, eventsOf, readChosen } from './event-choice.tsx';
import './webhooks.css';

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
  // A webhook that wakes a function has automations instead of events, and stays one.
  const [wakes, setWakes] = useState(webhook?.automations !== undefined);
  const [automations, setAutomations] = useState(webhook?.automations ?? []);
  const save = useAction(async () => {
    const body = { url, ...(wakes ? { automations } : { events: eventsOf(chosen) }) };
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
        shownFields={['url', 'events', 'automations', 'description']}
        ready={!wakes || automations.length > 0}
        onSubmit={() => save.run()}
        onCancel={onClose}
      >
        {webhook ? null : (
          <fieldset className="choices">
            <legend>What it receives</legend>
            <label>
              <input type="radio" name="receives" checked={!wakes} onChange={() => setWakes(false)} />
              <span>
                <strong>Events</strong>
                <span className="hint">Such as uploads and completed runs.</span>
              </span>
            </label>
            <label>
              <input type="radio" name="receives" checked={wakes} onChange={() => setWakes(true)} />
              <span>
                <strong>Runs to execute</strong>
                <span className="hint">Wakes a function that executes workflows in code.</span>
              </span>
            </label>
          </fieldset>
        )}
        <Field
          label="URL"
          hint={wakes ? 'The address of the function.' : 'Receives each event as a signed POST request.'}
          error={fieldError(save.error, 'url')}
        >
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
        {wakes ? (
          <AutomationChoice
            value={automations}
            error={fieldError(save.error, 'automations')}
            onChange={setAutomations}
          />
        ) : (
          <EventChoice value={chosen} error={fieldError(save.error, 'events')} onChange={setChosen} />
        )}
      </Form>
    </Dialog>
  );
}
