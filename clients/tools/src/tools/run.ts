import { z } from 'zod';
import { defineTool, type ToolDefinition } from '../definition.ts';
import { ToolError } from '../errors.ts';
import { describeAllowed, type Limits } from '../options.ts';
import type { QuarryClient, Session } from '../session.ts';
import { cutText, isSameId, requireOneOf } from '../text.ts';

export type RunInput = {
  automation?: string | undefined;
  payload?: Record<string, unknown> | undefined;
  run?: string | undefined;
};
export type RunResult = {
  run: string;
  status: 'pending' | 'running' | 'completed' | 'failed' | 'cancelled';
  result?: unknown;
  /** The beginning of the JSON of a result that is too long. */
  result_cut?: string;
  error?: { code: string; message: string; node_id?: string };
};
type Run = Omit<RunResult, 'run' | 'result_cut'> & { id: string; automation: string };
type AutomationPage = { data: { id: string; lookup_key?: string }[]; has_next: boolean };

const headerCharacters = 500;
const automationPagesMax = 20;

export function runTool(client: QuarryClient, limits: Limits): ToolDefinition<RunInput, RunResult> {
  const { automations, waitSeconds } = limits;
  return defineTool<RunInput, RunResult>(client, limits, {
    name: 'run',
    description: `Runs an automation with a payload and returns its result. Waits up to ${waitSeconds} seconds; if the status is still running, call it again with the run's id alone. The automations are:${describeAllowed(automations)}`,
    input: z.strictObject({
      automation: z.enum([...automations.keys()]).optional(),
      payload: z.record(z.string(), z.unknown()).optional().describe('What the automation takes.'),
      run: z.string().max(200).optional().describe('atr_…: a run that was started before.'),
    }),
    async run({ automation, payload, run }, session) {
      const [kind, value] = requireOneOf({ automation, run });
      const path = `/api/v1/automations/${encodeURIComponent(value)}/invoke`;
      const body = payload === undefined ? {} : { payload };
      const started =
        kind === 'run' ? await getAllowed(session, value) : await session.request<Run>('POST', path, { body });
      const ended = ({ status }: Run) => status !== 'pending' && status !== 'running';
      return present(limits, await session.waitFor(started, ended, () => getRun(session, started.id)));
    },
    describe({ run, status, result, result_cut: cut, error }) {
      if (error !== undefined) return `${run} is ${status}: ${error.code}: ${error.message}`;
      if (status === 'pending' || status === 'running')
        return `${run} is ${status}. Call run with run ${run} to look again.`;
      return `${run} is ${status}.\n${cut ?? JSON.stringify(result) ?? ''}`;
    },
  });
}

function getRun(session: Session, id: string): Promise<Run> {
  return session.request('GET', `/api/v1/automation_runs/${encodeURIComponent(id)}`);
}

/** A run of one of the automations that are allowed. */
async function getAllowed(session: Session, id: string): Promise<Run> {
  const found = await getRun(session, id);
  const { automations } = session.limits;
  if ([...automations.keys()].some((name) => isSameId(name, found.automation))) return found;
  for (let page = 1; page <= automationPagesMax; page++) {
    const query = { page, page_size: 100 };
    const list = await session.request<AutomationPage>('GET', '/api/v1/invocable_automations', { query });
    const match = list.data.find((each) => each.id === found.automation);
    if (match?.lookup_key !== undefined && automations.has(match.lookup_key)) return found;
    if (match !== undefined || !list.has_next) break;
  }
  throw new ToolError('not_allowed', `${id} is a run of an automation that this tool may not use.`);
}

function present(limits: Limits, { id, status, result, error }: Run): RunResult {
  const text = JSON.stringify(result) ?? '';
  const cut = text.length > limits.charactersMax - headerCharacters;
  return {
    ...{ run: id, status },
    ...(cut ? { result_cut: cutText(text, limits.charactersMax - headerCharacters) } : {}),
    ...(cut || result === undefined ? {} : { result }),
    ...(error === undefined ? {} : { error: { ...error, message: cutText(error.message, headerCharacters) } }),
  };
}
