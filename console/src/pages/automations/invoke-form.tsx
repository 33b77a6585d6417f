import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { AutomationRun } from '../../api/generated.ts';
import { CodeField } from '../../ui/basics.tsx';
import { Form } from '../../ui/dialog.tsx';
import { parseObject } from '../../ui/json.ts';
import { useAction } from '../../ui/use-load.ts';

/** Starts a run with a JSON payload. */
export function InvokeForm({
  automation,
  suggestion = '{}',
  onRun,
}: {
  automation: string;
  suggestion?: string;
  onRun: (run: AutomationRun) => void;
}) {
  const [payload, setPayload] = useState(suggestion);
  const invoke = useAction(async () => {
    const body = { payload: parseObject(payload) };
    onRun(await call('POST /api/v1/automations/{automation}/invoke', { path: { automation }, body }));
  });
  return (
    <Form submit="Run it" busy={invoke.busy} error={invoke.error} onSubmit={() => invoke.run()}>
      <CodeField
        label="Payload"
        hint="A JSON object: the input of the run."
        rows={4}
        value={payload}
        onChange={setPayload}
      />
    </Form>
  );
}

/** An example payload with every required member of the input schema. */
export function suggestPayload(schema: Record<string, unknown> | null): string {
  const properties = (schema?.properties ?? {}) as Record<string, { type?: string; default?: unknown }>;
  const blank = { string: '', integer: 0, number: 0, boolean: false, array: [], object: {} } as Record<string, unknown>;
  const members = Object.entries(properties).map(([name, { type, default: given }]) => [
    name,
    given ?? blank[type ?? ''] ?? null,
  ]);
  return JSON.stringify(Object.fromEntries(members), null, 2);
}
