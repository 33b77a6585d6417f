import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { ChartTemplates, type Values } from './chart-template.ts';

/*
 * Writes what the Helm chart makes of its default values, for clusters without Helm: deploy/kubernetes/quarry.yaml, to
 * apply, and migrate.yaml, to create before an upgrade. Copies the rules and the dashboard into the chart.
 */
const root = join(import.meta.dirname, '..');
const chartDirectory = join(root, 'deploy', 'helm', 'quarry');
export const manifestsFile = join(root, 'deploy', 'kubernetes', 'quarry.yaml');
export const migrationFile = join(root, 'deploy', 'kubernetes', 'migrate.yaml');
/** Files that the chart contains as copies: Helm reads nothing outside of its directory. */
export const copiedFiles = ['alerts.yml', 'grafana-dashboard.json'].map((name) => ({
  from: join(root, 'deploy', 'monitoring', name),
  to: join(chartDirectory, 'files', name),
}));

/** The manifests of the chart, by template. @param changes changes the chart's values first */
function renderTemplates(changes: (values: Values) => void = () => {}): Map<string, string> {
  const values = readChartFile('values.yaml') as Values;
  changes(values);
  const { name, version } = readChartFile('Chart.yaml') as { name: string; version: string };
  const scope = {
    Values: values,
    Chart: { Name: name, Version: version },
    Release: { Name: 'quarry', Namespace: 'quarry', Service: 'Helm' },
  };
  const templates = new ChartTemplates((path) => readFileSync(join(chartDirectory, path), 'utf8'));
  const names = readdirSync(join(chartDirectory, 'templates')).sort();
  const read = (file: string) => templates.parse(readFileSync(join(chartDirectory, 'templates', file), 'utf8'));
  const parsed = names.map((file) => ({ file, nodes: read(file) }));
  const rendered = parsed.map(({ file, nodes }) => [file, templates.render(nodes, scope)] as const);
  return new Map(rendered.filter(([file]) => !file.startsWith('_')));
}

/** The manifests of the chart as one text, as `helm template` prints them. */
export function renderChart(changes?: (values: Values) => void): string {
  return joinManifests(manifestsOf(renderTemplates(changes)));
}

/** What to apply without Helm: everything but the Job, whose template cannot be changed by a second apply. */
export function renderManifests(): string {
  const templates = renderTemplates();
  templates.delete('migrate.yaml');
  return `${header}${withoutHelm(joinManifests(manifestsOf(templates)))}`;
}

/** The Job, with a new name each time: `kubectl create -f`. */
export function renderMigration(): string {
  const text = renderTemplates().get('migrate.yaml') ?? '';
  const unhooked = text
    .replace('name: quarry-migrate', 'generateName: quarry-migrate-')
    .replace(/ {2}annotations:\n(?: {4}.*\n)+/, '')
    .replace('  backoffLimit: 3', '  ttlSecondsAfterFinished: 86400\n  backoffLimit: 3');
  return `${header}${withoutHelm(unhooked).trim()}\n`;
}

function withoutHelm(text: string): string {
  return text.replace(/^ *app\.kubernetes\.io\/managed-by: Helm\n/gm, '');
}

function manifestsOf(templates: Map<string, string>): string[] {
  const files = [...templates].filter(([file]) => file.endsWith('.yaml'));
  return files.flatMap(([, text]) => text.split(/^---$/m)).map((text) => text.trim());
}

function joinManifests(manifests: string[]): string {
  const full = manifests.filter((text) => parseAllDocuments(text).some((document) => document.toJS() !== null));
  return `${full.join('\n---\n')}\n`;
}

function readChartFile(name: string): unknown {
  return parse(readFileSync(join(chartDirectory, name), 'utf8'));
}

const header = '# Made from the Helm chart by `npm run manifests`: change that.\n';

if (import.meta.main) {
  mkdirSync(join(chartDirectory, 'files'), { recursive: true });
  for (const { from, to } of copiedFiles) copyFileSync(from, to);
  writeFileSync(manifestsFile, renderManifests());
  writeFileSync(migrationFile, renderMigration());
}
