import { Link } from 'wouter';
import type { ModelCall } from '../../api/generated.ts';
import { Json } from '../../ui/code.tsx';
import { compact, duration } from '../../ui/format.ts';
import { useApi } from '../../ui/query.ts';
import { State } from '../../ui/state.tsx';
import { money } from '../models/money.ts';
import type { Execution, ToolCall } from './run-state.ts';
import './tool-calls.css';

/** What a model asked for while it wrote, in order, each call with its arguments and its result. */
export function ToolCalls({
  execution: { commandId, turns },
  executions,
  onChoose,
}: {
  execution: Execution;
  executions: Execution[];
  onChoose: (command: string) => void;
}) {
  if (turns.length === 0) return null;
  const nested = executions.filter(({ parent }) => parent === commandId);
  let number = -1;
  return (
    <>
      <h3>Tools that the model called</h3>
      <ol className="turns">
        {turns.map((turn, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the journal only grows
          <li key={at}>
            <p className="faint">
              Response {at + 1}
              {turn.text === '' ? '' : `: “${turn.text}”`}
            </p>
            {turn.tool_calls.map((call) => {
              number += 1;
              const of = nested.filter(({ index }) => index === number);
              return <Call key={call.id} call={call} executions={of} onChoose={onChoose} />;
            })}
          </li>
        ))}
      </ol>
    </>
  );
}

function Call({
  call: { name, arguments: given, error: refused },
  executions,
  onChoose,
}: {
  call: ToolCall;
  executions: Execution[];
  onChoose: (command: string) => void;
}) {
  const approval = executions.find(({ nodeId }) => nodeId.endsWith('/approval'));
  const made = executions.find((one) => one !== approval);
  const shown = made ?? approval;
  const error = refused ?? made?.error;
  return (
    <div className="tool-call">
      <p>
        <strong>{name}</strong>{' '}
        {refused ? <State value="failed" label="not made" /> : shown ? <State value={shown.state} /> : null}
        {shown ? (
          <button type="button" className="as-link" onClick={() => onChoose(shown.commandId)}>
            {made === undefined ? 'Its approval' : 'Details'}
          </button>
        ) : null}
      </p>
      <Json value={parsed(given)} label={`Arguments of ${name}`} />
      {error ? (
        <p className="hint wrong">
          {error.code}: {error.message}
        </p>
      ) : approval?.state === 'done' && made === undefined ? (
        <p className="hint">{refusalOf(approval.output)}</p>
      ) : null}
      {made?.output === undefined ? null : (
        <>
          <p className="hint">Its result:</p>
          <Json value={made.output} label={`Result of ${name}`} />
        </>
      )}
    </div>
  );
}

function refusalOf(output: unknown): string {
  const { ok, data } = (output ?? {}) as { ok?: boolean; data?: { comment?: unknown } };
  if (ok === true) return 'Approved.';
  return typeof data?.comment === 'string'
    ? `A person refused this call: ${data.comment}`
    : 'A person refused this call.';
}

/** Arguments are JSON, unless the model wrote something else. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The requests to language models that a node of the run made, with their tokens and cost. */
export function ModelCalls({ run, node }: { run: string; node: string }) {
  const calls = useApi('GET /api/v1/model_calls', { query: { run, page_size: 100 } });
  const own = (calls.data?.data.filter((one) => one.node === node) ?? []).toReversed();
  if (own.length === 0) return null;
  return (
    <>
      <h3>Requests to the model</h3>
      <ol className="model-calls">
        {own.map((one) => (
          <li key={one.id}>
            <span>
              <Link href="/models?tab=calls">{one.model}</Link> <State value={one.status} />
            </span>
            <span className="faint">{factsOf(one)}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

function factsOf({
  prompt_tokens,
  completion_tokens,
  cost,
  latency_ms,
  first_token_ms,
  error_code,
}: ModelCall): string {
  const parts = [
    ...(error_code === undefined ? [] : [error_code]),
    ...(prompt_tokens === undefined ? [] : [`${compact(prompt_tokens)} in, ${compact(completion_tokens ?? 0)} out`]),
    ...(cost === undefined ? [] : [`cost ${money(cost)}`]),
    ...(first_token_ms === undefined ? [] : [`first token after ${duration(first_token_ms)}`]),
    ...(latency_ms === undefined ? [] : [`took ${duration(latency_ms)}`]),
  ];
  return parts.join(' · ');
}
