import { useState } from 'react';
import { useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import type { AutomationRun, WorkflowJournalEntry } from '../../api/generated.ts';
import { Dialog, Form } from '../../ui/dialog.tsx';
import { CodeField } from '../../ui/field.tsx';
import { parseJson } from '../../ui/json.ts';
import { useAction } from '../../ui/query.ts';
import type { Execution } from './run-state.ts';

/** Starts a run that continues before this execution of a node, or from the failure, with outputs that may be edited. */
export function RunAgain({
  run,
  execution,
  entries,
  onClose,
}: {
  run: AutomationRun;
  execution: Execution | 'failure';
  entries: WorkflowJournalEntry[];
  onClose: () => void;
}) {
  const [, navigate] = useLocation();
  const [outputs, setOutputs] = useState('{}');
  const start = useAction(async () => {
    const from = execution === 'failure' ? execution : { node: execution.nodeId, ...sequenceOf(entries, execution) };
    const edited = parseJson(outputs) as Record<string, unknown>;
    const body = { from, ...(Object.keys(edited).length === 0 ? {} : { outputs: edited }) };
    const path = { automation_run: run.id };
    const again = await call('POST /api/v1/automation_runs/{automation_run}/retry', { path, body });
    navigate(`/runs/${again.id}`);
  });
  const kept = execution === 'failure' ? 'everything that was finished' : `what ran before ${execution.nodeId}`;
  return (
    <Dialog title={execution === 'failure' ? 'Continue from the failure' : 'Run again from here'} onClose={onClose}>
      <Form submit="Start" busy={start.busy} error={start.error} onSubmit={() => start.run()} onCancel={onClose}>
        <p>A new run keeps {kept} and does the rest again. Finished steps are not repeated.</p>
        <CodeField
          label="Outputs to replace"
          hint="JSON by node: the new run reads these instead of the recorded outputs. Leave {} to keep them."
          rows={5}
          value={outputs}
          onChange={setOutputs}
        />
      </Form>
    </Dialog>
  );
}

/** The sequence of the entry that started the execution. */
function sequenceOf(entries: WorkflowJournalEntry[], { commandId }: Execution): { sequence?: number } {
  const start = entries.find(({ type, command_id }) => type === 'node_started' && command_id === commandId);
  return start === undefined ? {} : { sequence: start.sequence };
}
