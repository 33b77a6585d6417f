import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import { externalDatabase } from '../support/cells-of-process.ts';
import { sendMcp } from '../support/mcp.ts';
import { type ApiOptions, sendRequest } from '../support/request.ts';
import { startServe } from '../support/serve.ts';
import { until } from '../support/until.ts';

/* A task of the MCP endpoint is a row of the work that it waits for, so the process that made it may die. */

const root = mkdtempSync(join(tmpdir(), 'quarry-crash-mcp-tasks-'));
chmodSync(root, 0o755);
const { settings } = await externalDatabase();
const env = { ...settings, QUARRY_DATA_DIR: join(root, 'data'), QUARRY_LOG_LEVEL: 'silent' };
let server = await startServe(env);
after(async () => {
  await server.kill();
  rmSync(root, { recursive: true, force: true, maxRetries: 5 });
});
const { secret_key: key } = JSON.parse(readFileSync(join(root, 'data', 'credentials.json'), 'utf8')) as {
  secret_key: string;
};

async function restart(): Promise<void> {
  await server.kill();
  server = await startServe(env);
}

const api = <T>(method: string, path: string, options: ApiOptions) =>
  sendRequest<T>(server.baseUrl, method, path, options);
const automations = new AutomationsClient({ api }, { secretKey: key });

async function mcp(method: string, params: Record<string, unknown>) {
  const { result, error } = await sendMcp(server.baseUrl, { key }, method, params);
  assert.ok(result, JSON.stringify(error));
  return result;
}

test('a task that was started before the server was killed is read, completed and cancelled after', async () => {
  await automations.createAutomation({
    lookup_key: 'waits',
    workflow: graphOf(
      { id: 'wait', kind: 'wait_for_signal', name: 'go', on_success: 'done' },
      { id: 'done', kind: 'complete', result: '{{$nodes.wait}}' },
    ),
  });
  const start = () =>
    mcp('tools/call', { name: 'invoke_automation', arguments: { automation: 'waits', wait_seconds: 1 } });
  const [finished, cancelled] = [await start(), await start()];
  assert.deepEqual([finished.resultType, cancelled.resultType], ['task', 'task']);
  const look = (task: Record<string, unknown>) => mcp('tasks/get', { taskId: task.taskId });
  const untilOver = async (task: Record<string, unknown>) => {
    await until(async () => (await look(task)).status !== 'working');
    return look(task);
  };

  await restart();
  for (const task of [finished, cancelled]) {
    const { status, createdAt } = await look(task);
    assert.deepEqual([status, createdAt], ['working', task.createdAt]);
  }
  const signal = { name: 'go', payload: 7 };
  assert.ok((await automations.call('POST', `/automation_runs/${finished.taskId}/signal`, signal)).status < 300);
  const { status, result } = await untilOver(finished);
  const { structuredContent } = result as { structuredContent: Record<string, unknown> };
  assert.deepEqual([status, structuredContent.run], ['completed', finished.taskId]);

  await restart();
  assert.deepEqual((await look(finished)).result, result, 'the result after another kill');
  await mcp('tasks/cancel', { taskId: cancelled.taskId });
  assert.equal((await untilOver(cancelled)).status, 'cancelled');
});
