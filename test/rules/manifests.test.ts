import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { manifestsFile, renderChart, renderTemplate } from '../../scripts/render-chart.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { describeConfig, readConfig } from '../../src/config.ts';

type Container = { args?: string[]; ports?: { name: string; containerPort: number }[] };
type Manifest = {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  data?: Record<string, string>;
  spec?: Record<string, unknown>;
};
type Model = new (manifest: Manifest) => { validate(): void };

const everything = renderChart((values) => {
  (values.backup as Record<string, unknown>).enabled = true;
});

function readManifests(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}

/** Checks a manifest against the schema of its kind. */
async function validate(manifest: Manifest): Promise<void> {
  const [group, version] = manifest.apiVersion.includes('/') ? manifest.apiVersion.split('/') : [undefined, 'v1'];
  const path = [group, version, manifest.kind].filter((part) => part !== undefined).join('/');
  const models = (await import(`kubernetes-models/${path}`)) as Record<string, Model>;
  const Kind = models[manifest.kind];
  assert.ok(Kind, path);
  new Kind(manifest).validate();
}

/** Every value under this name, at any depth. */
function collect(value: unknown, name: string): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => (key === name ? [member] : collect(member, name)));
}

test('the manifests of the Helm chart have the form that Kubernetes expects', async () => {
  const manifests = readManifests(everything);
  for (const kind of ['Deployment', 'Service', 'Job', 'CronJob', 'Ingress', 'ConfigMap', 'PodDisruptionBudget'])
    assert.ok(
      manifests.some((manifest) => manifest.kind === kind),
      kind,
    );
  for (const manifest of manifests) await validate(manifest);

  const [deployment] = manifests.filter(({ kind }) => kind === 'Deployment');
  await assert.rejects(validate({ ...(deployment as Manifest), spec: { replicas: 'many' } }));
});

test('deploy/kubernetes is what the chart renders from its values', () => {
  const written = readFileSync(manifestsFile, 'utf8').replace(/^#.*\n/, '');
  assert.equal(written, renderChart(), 'Run `npm run manifests`.');
  assert.ok(!written.includes('kind: CronJob'), 'a part that is switched off is left out');
});

test('templates with words that the test cannot read are refused', () => {
  assert.equal(renderTemplate('a: {{ .Values.b | quote }}', { Values: { b: 1 } }), 'a: "1"');
  assert.throws(() => renderTemplate('{{ .Values.c }}', { Values: {} }), /cannot be read/);
  assert.throws(() => renderTemplate('{{ lookup "v1" }}', { Values: {} }), /cannot be read/);
});

test('settings, commands, ports and selectors of the manifests exist', () => {
  const manifests = readManifests(everything);
  const variables = new Set(describeConfig(readConfig({}), {}).map(({ variable }) => variable));
  for (const name of manifests.flatMap(({ kind, data }) => (kind === 'ConfigMap' ? Object.keys(data ?? {}) : [])))
    assert.ok(variables.has(name), name);

  const commands = new Map(buildProgram().program.commands.map((command) => [command.name(), command]));
  const containers = collect(manifests, 'containers').flat() as Container[];
  assert.equal(containers.length, 4);
  for (const { args = [] } of containers) {
    const command = commands.get(args[0] ?? '');
    assert.ok(command, args[0]);
    for (const option of args.filter((arg) => arg.startsWith('--')))
      assert.ok(
        command.options.some(({ long }) => long === option),
        `${args[0]} ${option}`,
      );
  }

  const labels = manifests
    .filter(({ kind }) => kind === 'Deployment')
    .map(({ spec }) => (collect(spec, 'labels')[0] ?? {}) as Record<string, string>);
  const service = manifests.find(({ kind }) => kind === 'Service');
  const selector = service?.spec?.selector as Record<string, string>;
  const selected = labels.filter((each) => Object.entries(selector).every(([name, value]) => each[name] === value));
  assert.deepEqual(
    selected.map((each) => each['app.kubernetes.io/component']),
    ['http'],
  );
});

test('no pod runs as root, can gain rights, or has no memory limit', () => {
  for (const manifest of readManifests(everything).filter(({ spec }) => collect(spec, 'containers').length > 0)) {
    const where = `${manifest.kind} ${manifest.metadata.name}`;
    assert.deepEqual(collect(manifest.spec, 'runAsNonRoot'), [true], where);
    assert.deepEqual(collect(manifest.spec, 'allowPrivilegeEscalation'), [false], where);
    assert.equal(collect(collect(manifest.spec, 'limits'), 'memory').length, 1, where);
  }
});
