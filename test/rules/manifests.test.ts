import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { Ajv } from 'ajv';
import { parse, parseAllDocuments } from 'yaml';
import { ChartTemplates } from '../../scripts/chart-template.ts';
import {
  copiedFiles,
  manifestsFile,
  migrationFile,
  renderChart,
  renderManifests,
  renderMigration,
} from '../../scripts/render-chart.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { describeConfig, readConfig } from '../../src/config/config.ts';
import { readProjectFile } from '../support/source.ts';

type Container = { name: string; args?: string[]; ports?: { name: string; containerPort: number }[] };
type Manifest = {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  data?: Record<string, string>;
  spec?: Record<string, unknown>;
};
type Model = new (manifest: Manifest) => { validate(): void };

type Changeable = Record<string, Record<string, unknown>>;

/** Every part of the chart that can be switched on. */
function switchOnEverything(values: Record<string, unknown>): void {
  const parts = values as Changeable;
  for (const name of ['backup', 'externalSecret', 'httpRoute', 'networkPolicy', 'renderer'])
    (parts[name] as Record<string, unknown>).enabled = true;
  for (const name of ['http', 'worker']) {
    const part = parts[name] as Changeable;
    (part.autoscaling as Record<string, unknown>).enabled = true;
    Object.assign(part, { nodeSelector: { disk: 'fast' }, tolerations: [{ key: 'quarry', operator: 'Exists' }] });
    Object.assign(part, { affinity: { podAntiAffinity: {} }, priorityClassName: 'important' });
  }
  Object.assign(values, {
    monitoring: { serviceMonitor: true, prometheusRule: true, dashboard: true },
    imagePullSecrets: [{ name: 'registry' }],
    extraEnv: [{ name: 'DATABASE_URL', valueFrom: { secretKeyRef: { name: 'database', key: 'uri' } } }],
    extraObjects: [
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'more' }, data: { note: 'of the operator' } },
    ],
  });
}

const everything = renderChart(switchOnEverything);

function readManifests(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}

const packageOf: Record<string, string> = {
  'external-secrets.io': '@kubernetes-models/external-secrets',
  'gateway.networking.k8s.io': '@kubernetes-models/gateway-api',
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
  'postgresql.cnpg.io': '@kubernetes-models/cloudnative-pg',
};

/** Checks a manifest against the schema of its kind. */
async function validate(manifest: Manifest): Promise<void> {
  const [group, version] = manifest.apiVersion.includes('/') ? manifest.apiVersion.split('/') : [undefined, 'v1'];
  const path = [group, version, manifest.kind].filter((part) => part !== undefined).join('/');
  const models = (await import(`${packageOf[group ?? ''] ?? 'kubernetes-models'}/${path}`)) as Record<string, Model>;
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
  const kinds = [
    ...['Deployment', 'Service', 'Job', 'CronJob', 'Ingress', 'ConfigMap', 'PodDisruptionBudget', 'ServiceAccount'],
    ...['HTTPRoute', 'NetworkPolicy', 'HorizontalPodAutoscaler', 'ExternalSecret', 'ServiceMonitor', 'PrometheusRule'],
  ];
  for (const kind of kinds)
    assert.ok(
      manifests.some((manifest) => manifest.kind === kind),
      kind,
    );
  for (const manifest of manifests) await validate(manifest);

  const [deployment] = manifests.filter(({ kind }) => kind === 'Deployment');
  await assert.rejects(validate({ ...(deployment as Manifest), spec: { replicas: 'many' } }));
});

test('the example with CloudNativePG has the form that its operator expects, and the chart accepts its values', async () => {
  for (const manifest of readManifests(readProjectFile('deploy/kubernetes/examples/cloudnative-pg.yaml')))
    await validate(manifest);
  const example = parse(readProjectFile('deploy/kubernetes/examples/cloudnative-pg-values.yaml'));
  assert.deepEqual(findWrongValues(example, { partial: true }), []);
  const rendered = renderChart((values) => merge(values, example));
  for (const manifest of readManifests(rendered)) await validate(manifest);
  assert.ok(!rendered.includes('kind: Ingress\n') && rendered.includes('name: quarry-database-app'));
});

test('the schema of the values accepts those of the chart and refuses unknown or wrong ones', () => {
  const values = () => parse(readProjectFile('deploy/helm/quarry/values.yaml'));
  assert.deepEqual(findWrongValues(values()), []);
  const all = values();
  switchOnEverything(all);
  assert.deepEqual(findWrongValues(all), []);
  for (const wrong of [
    ...[{ replica: 3 }, { http: { replicas: 'many', resources: {} } }, { settings: { QUARRY_JOBS: 4 } }],
    ...[{ ingress: { enable: true } }, { backup: { enabled: true, to: '/backups' } }],
  ])
    assert.notDeepEqual(findWrongValues({ ...values(), ...wrong }), [], JSON.stringify(wrong));
});

test('deploy/kubernetes is what the chart renders from its values', () => {
  const run = 'Run `npm run manifests`.';
  const written = readFileSync(manifestsFile, 'utf8');
  assert.equal(written, renderManifests(), run);
  assert.equal(readFileSync(migrationFile, 'utf8'), renderMigration(), run);
  for (const { from, to } of copiedFiles) assert.equal(readFileSync(to, 'utf8'), readFileSync(from, 'utf8'), run);
  assert.ok(!written.includes('kind: CronJob'), 'a part that is switched off is left out');
});

test('what is applied again contains no Job, whose template cannot change, and the migration has a new name each time', () => {
  assert.ok(!readManifests(readFileSync(manifestsFile, 'utf8')).some(({ kind }) => kind === 'Job'));
  const [job] = readManifests(readFileSync(migrationFile, 'utf8'));
  assert.equal(job?.kind, 'Job');
  assert.deepEqual(Object.keys(job?.metadata ?? {}).sort(), ['generateName', 'labels']);
  // Helm runs it before it creates a ServiceAccount.
  assert.ok(!JSON.stringify(job).includes('serviceAccountName'));
});

test('metrics are on a port that neither Service nor Ingress reaches', () => {
  const manifests = readManifests(everything);
  const settings = manifests.find(({ kind, data }) => kind === 'ConfigMap' && data?.QUARRY_PUBLIC_URL !== undefined);
  assert.equal(settings?.data?.QUARRY_METRICS_PORT, '9464');
  const service = manifests.find(({ kind, metadata }) => kind === 'Service' && metadata.name === 'quarry');
  assert.deepEqual(collect(service, 'targetPort'), ['http']);
});

test('templates with words that the test cannot read are refused', () => {
  const templates = new ChartTemplates(() => '');
  const render = (text: string, values = {}) => templates.render(templates.parse(text), values);
  assert.equal(render('a: {{ .b | quote }}', { b: 1 }), 'a: "1"');
  assert.equal(render('{{ if .a -}}\n  yes\n{{- else }} no {{- end }}', { a: [] }), ' no');
  assert.equal(render('{{ range $x := .l }}{{ $x }}{{ $.y }}{{ end }}', { l: [1, 2], y: '.' }), '1.2.');
  assert.throws(() => render('{{ .c }}'), /has no value/);
  assert.throws(() => render('{{ lookup "v1" }}'), /lookup is not known/);
  assert.throws(() => render('{{ if .a }}'), /has no end/);
});

test('settings, commands, ports and selectors of the manifests exist', () => {
  const manifests = readManifests(everything);
  const variables = new Set(describeConfig(readConfig({}), {}).map(({ variable }) => variable));
  for (const name of manifests.flatMap(({ kind, data }) =>
    kind === 'ConfigMap' && data?.QUARRY_PUBLIC_URL !== undefined ? Object.keys(data) : [],
  ))
    assert.ok(variables.has(name), name);

  const commands = new Map(buildProgram().program.commands.map((command) => [command.name(), command]));
  const containers = collect(manifests, 'containers').flat() as Container[];
  assert.equal(containers.length, 5);
  for (const { args = [] } of containers.filter(({ name }) => name === 'quarry')) {
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
  const service = manifests.find(({ kind, metadata }) => kind === 'Service' && metadata.name === 'quarry');
  const selector = service?.spec?.selector as Record<string, string>;
  const selected = labels.filter((each) => Object.entries(selector).every(([name, value]) => each[name] === value));
  assert.deepEqual(
    selected.map((each) => each['app.kubernetes.io/component']),
    ['http'],
  );
});

test('every pod keeps to the restricted Pod Security Standard, has a memory limit and no token', () => {
  const pods = readManifests(everything).filter(({ spec }) => collect(spec, 'containers').length > 0);
  assert.equal(pods.length, 5);
  assert.deepEqual(pods.flatMap(findUnrestricted), []);
});

test('the rule finds what the restricted Pod Security Standard forbids', () => {
  const [pod] = readManifests(everything).filter(({ kind }) => kind === 'Deployment');
  const text = JSON.stringify(pod);
  for (const [from, to] of [
    ['"runAsNonRoot":true', '"runAsNonRoot":false'],
    ['"allowPrivilegeEscalation":false', '"allowPrivilegeEscalation":true'],
    ['"drop":["ALL"]', '"drop":[]'],
    ['"emptyDir":{}', '"hostPath":{"path":"/"}'],
    ['"type":"RuntimeDefault"', '"type":"Unconfined"'],
    ['"automountServiceAccountToken":false', '"hostNetwork":true,"automountServiceAccountToken":false'],
    ['"automountServiceAccountToken":false', '"automountServiceAccountToken":true'],
    ['"memory":"1536Mi"', '"cpu":1'],
  ] as const) {
    assert.ok(text.includes(from), from);
    assert.equal(findUnrestricted(JSON.parse(text.replace(from, to))).length, 1, to);
  }
});

/** Why a pod is not allowed where the restricted standard is enforced. */
function findUnrestricted({ kind, metadata, spec }: Manifest): string[] {
  const where = `${kind} ${metadata.name ?? 'migrate'}`;
  const volumes = (collect(spec, 'volumes').flat() as Record<string, unknown>[]).map(
    ({ name: _, ...source }) => source,
  );
  const isSame = (name: string, expected: unknown[]) => isDeepStrictEqual(collect(spec, name), expected);
  const rules: [string, boolean][] = [
    ['runs as a user other than root', isSame('runAsNonRoot', [true]) && isSame('runAsUser', [1000])],
    ['cannot gain rights', isSame('allowPrivilegeEscalation', [false])],
    ['has no capabilities', isSame('drop', [['ALL']]) && isSame('add', [])],
    ['has the default seccomp profile', isSame('seccompProfile', [{ type: 'RuntimeDefault' }])],
    ['mounts nothing of the node', volumes.every((source) => 'emptyDir' in source)],
    [
      'shares nothing with the node',
      ['hostNetwork', 'hostPID', 'hostIPC', 'hostPort'].every((name) => isSame(name, [])),
    ],
    ['is not privileged', isSame('privileged', [])],
    ['cannot change its image', isSame('readOnlyRootFilesystem', [true])],
    ['has no token', isSame('automountServiceAccountToken', [false])],
    ['has a memory limit', collect(collect(spec, 'limits'), 'memory').length === 1],
  ];
  return rules.flatMap(([rule, isKept]) => (isKept ? [] : [`${where}: ${rule}`]));
}

/** Why Helm would refuse these values. @param options.partial for values that Helm merges with those of the chart */
function findWrongValues(values: unknown, { partial = false } = {}): string[] {
  const { required, ...schema } = JSON.parse(readProjectFile('deploy/helm/quarry/values.schema.json'));
  const text = JSON.stringify({ ...schema, ...(partial ? {} : { required }) });
  const checked = JSON.parse(text, (key, value) => (partial && key === 'required' ? undefined : value));
  const ajv = new Ajv({ allErrors: true });
  return ajv.validate(checked, values) ? [] : [ajv.errorsText()];
}

/** Merges values as Helm does: objects member by member, everything else whole. */
function merge(into: Record<string, unknown>, from: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(from)) {
    const present = into[name];
    if (isObject(value) && isObject(present)) merge(present, value);
    else into[name] = value;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
