import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parse } from 'yaml';
import { startTwoCells } from '../../support/cells.ts';
import { projectRoot, readProjectFile } from '../../support/source.ts';

// Some metrics exist only with cells.
const server = await startTwoCells();
after(() => server.close());

type Rules = { groups: { rules: { alert: string; expr: string; annotations: { summary: string } }[] }[] };
type Dashboard = { panels: { title: string; targets?: { expr: string }[] }[] };

const rules = (parse(readProjectFile('deploy/monitoring/alerts.yml')) as Rules).groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(readProjectFile('deploy/monitoring/grafana-dashboard.json')) as Dashboard;
const expressions = [
  ...rules.map(({ alert, expr }) => ({ where: alert, expr })),
  ...dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ where: title, expr }))),
];

/** The metrics that an expression reads. Prometheus itself makes `up`. */
function metricsOf(expr: string): string[] {
  return (expr.replace(/"[^"]*"/g, '').match(/\b(?:quarry|process|nodejs)_\w+/g) ?? []).map((name) =>
    name.replace(/^(quarry_\w+_seconds)_(?:bucket|count|sum)$/, '$1'),
  );
}

/** The names of all metrics, also of those that have no value yet. */
async function readNames(): Promise<Set<string>> {
  const { text } = await server.api('GET', '/metrics');
  return new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name));
}

test('every metric that the dashboard and the alerts name exists', async () => {
  const names = await readNames();
  const unknown = expressions.flatMap(({ where, expr }) =>
    metricsOf(expr)
      .filter((name) => !names.has(name))
      .map((name) => `${where}: ${name}`),
  );
  assert.ok(expressions.length > 40);
  assert.deepEqual(unknown, []);
  assert.deepEqual(metricsOf('rate(quarry_http_request_duration_seconds_bucket{a="quarry_b"}[5m]) > quarry_c'), [
    'quarry_http_request_duration_seconds',
    'quarry_c',
  ]);
});

test('every metric of our own is on the dashboard or in an alert', async () => {
  const used = new Set(expressions.flatMap(({ expr }) => metricsOf(expr)));
  const unused = [...(await readNames())].filter((name) => name.startsWith('quarry_') && !used.has(name));
  assert.deepEqual(unused, [], 'Add a panel to deploy/monitoring/grafana-dashboard.json.');
});

test('promtool accepts the alert rules', (context) => {
  const found = spawnSync('promtool', ['check', 'rules', join(projectRoot, 'deploy/monitoring/alerts.yml')]);
  if (found.error) return context.skip('promtool, of the package prometheus, is not installed');
  assert.equal(found.status, 0, String(found.stderr));
});
