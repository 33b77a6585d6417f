import { useState } from 'react';
import { call } from '../../api/client.ts';
import { Form } from '../../ui/dialog.tsx';
import { CodeField } from '../../ui/field.tsx';
import { parseObject } from '../../ui/json.ts';
import { useAction } from '../../ui/query.ts';

/** Starts a run with a JSON payload or, with `event`, by emitting that event. */
export function InvokeForm({
  automation,
  event,
  suggestion = '{}',
  onRun,
}: {
  automation: string;
  event?: string;
  suggestion?: string;
  onRun: (run: { id: string }) => void;
}) {
  const [payload, setPayload] = useState(suggestion);
  const invoke = useAction(
    async () => {
      const given = parseObject(payload);
      if (event !== undefined)
        return onRun(await call('POST /api/v1/events', { body: { name: event, payload: given } }));
      const path = { automation };
      onRun(await call('POST /api/v1/automations/{automation}/invoke', { path, body: { payload: given } }));
    },
    { refresh: ['GET /api/v1/automation_runs'] },
  );
  return (
    <Form
      submit={event === undefined ? 'Run it' : `Emit ${event}`}
      busy={invoke.busy}
      error={invoke.error}
      onSubmit={() => invoke.run()}
    >
      <CodeField
        label="Payload"
        hint={event === undefined ? 'A JSON object: the input of the run.' : 'A JSON object: the payload of the event.'}
        rows={4}
        value={payload}
        onChange={setPayload}
      />
    </Form>
  );
}

/** An example payload with every member of the input schema. */
export function suggestPayload(schema: Record<string, unknown> | null): string {
  const properties = (schema?.properties ?? {}) as Record<string, { type?: string; default?: unknown }>;
  const blank = { string: '', integer: 0, number: 0, boolean: false, array: [], object: {} } as Record<string, unknown>;
  const members = Object.entries(properties).map(([name, { type, default: given }]) => [
    name,
    given ?? blank[type ?? ''] ?? null,
  ]);
  return JSON.stringify(Object.fromEntries(members), null, 2);
}
