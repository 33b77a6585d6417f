import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAutomationFile } from '../../src/automations/definitions/source-file.ts';

const good = `name: Triage
lookup_key: triage
type: invoked
workflow:
  kind: WorkflowGraph
  version: 1
  start_node: start
  nodes:
    - id: start
      kind: trigger
      on_success: done
    - { id: done, kind: complete, result: "{{$.bug}}" }
`;

function problems(text: string): string[] {
  return readAutomationFile(text).problems.map(
    ({ line, column, node, message }) => `${line}:${column} ${node ?? '-'} ${message}`,
  );
}

test('a good file has no problems, as YAML and as JSON', () => {
  const { file } = readAutomationFile(good);
  assert.equal(file?.automation?.name, 'Triage');
  assert.deepEqual(problems(JSON.stringify(file?.automation)), []);
  assert.deepEqual(problems(JSON.stringify(file?.graph)), []);
});

test('each mistake is shown at its line, with its node', () => {
  assert.deepEqual(
    problems(good.replace('kind: trigger', 'kind: magic')).map((text) => text.slice(0, 20)),
    ['10:7 start kind must'],
  );
  assert.deepEqual(problems(good.replace('on_success: done', 'on_success: nowhere')), [
    '11:7 start on_success does not name a node: "nowhere"',
    '12:7 done cannot be reached from start_node',
  ]);
  assert.deepEqual(problems(good.replace('{{$.bug}}', '{{1 +}}')), [
    '12:35 done result does not parse: Unexpected end of expression at character 3 in "1 +"',
  ]);
  assert.deepEqual(problems(good.replace('type: invoked', 'type: invoked\ncolour: red')), [
    '4:1 - colour is not a known member',
  ]);
  assert.deepEqual(problems(good.replace('type: invoked', 'type: scheduled\nschedule: "* * *"')), [
    '4:1 - schedule must have five fields: minute hour day month weekday',
  ]);
  assert.match(problems('name: [')[0] ?? '', /^1:\d+ - /);
});
