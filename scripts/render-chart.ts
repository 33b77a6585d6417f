import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';

/*
 * Writes deploy/kubernetes/quarry.yaml: what the Helm chart makes of its default values, for clusters without Helm. The
 * templates use only the few words of Helm's language that are read here, so that a test can check them without Helm.
 */
type Values = Record<string, unknown>;

const root = join(import.meta.dirname, '..');
const chart = join(root, 'deploy', 'helm', 'quarry');
export const manifestsFile = join(root, 'deploy', 'kubernetes', 'quarry.yaml');

/** The manifests of the chart, as one text. @param changes values in place of the chart's. */
export function renderChart(changes: (values: Values) => void = () => {}): string {
  const values = parse(readFileSync(join(chart, 'values.yaml'), 'utf8')) as Values;
  changes(values);
  const scope = { Values: values, Release: { Name: 'quarry' } };
  const templates = readdirSync(join(chart, 'templates')).sort();
  return templates
    .map((name) => renderTemplate(readFileSync(join(chart, 'templates', name), 'utf8'), scope).trim())
    .filter((text) => text !== '')
    .join('\n---\n')
    .concat('\n');
}

/** Throws at a word that it does not know. */
export function renderTemplate(template: string, scope: Values): string {
  let isShown = true;
  const pieces = template.split(/(\s*\{\{-.*?\}\}|\{\{.*?\}\})/s);
  return pieces
    .map((piece) => {
      const [, action] = /^\s*\{\{-?\s*(.*?)\s*\}\}$/s.exec(piece) ?? [];
      if (action === undefined) return isShown ? piece : '';
      if (action === 'end') {
        isShown = true;
        return '';
      }
      const [, condition] = /^if (\.[\w.]+)$/.exec(action) ?? [];
      if (condition !== undefined) {
        isShown = Boolean(lookUp(condition, scope));
        return '';
      }
      return isShown ? evaluate(action, scope) : '';
    })
    .join('');
}

function evaluate(action: string, scope: Values): string {
  const [, path = '', , filter, indent] = /^(?:toYaml )?(\.[\w.]+)( \| (quote|nindent (\d+)))?$/.exec(action) ?? [];
  const value = lookUp(path, scope);
  if (path === '' || value === undefined) throw new Error(`The template has {{ ${action} }}, which cannot be read.`);
  if (filter === 'quote') return JSON.stringify(String(value));
  if (indent === undefined) return String(value);
  const lines = stringify(value).trimEnd().split('\n');
  return lines.map((line) => `\n${' '.repeat(Number(indent))}${line}`).join('');
}

function lookUp(path: string, scope: Values): unknown {
  let found: unknown = scope;
  for (const name of path.split('.').slice(1)) found = (found as Values | undefined)?.[name];
  return found;
}

if (import.meta.main)
  writeFileSync(manifestsFile, `# Made from the Helm chart by \`npm run manifests\`: change that.\n${renderChart()}`);
