import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Command } from 'commander';
import { parse } from 'yaml';
import { buildProgram } from '../../src/cli/program.ts';
import { describeConfig, readConfig } from '../../src/config/config.ts';
import { projectRoot, readProjectFile } from '../support/source.ts';

type Service = {
  image?: string;
  environment?: Record<string, string>;
  command?: unknown;
  depends_on?: Record<string, { condition: string }>;
  volumes?: string[];
};
type Compose = { services: Record<string, Service>; volumes: Record<string, unknown> };

const dockerfile = readProjectFile('Dockerfile');
const compose = parse(readProjectFile('compose.yaml'), { merge: true }) as Compose;
const units = readdirSync(join(projectRoot, 'deploy')).filter((name) => /\.(service|timer)$/.test(name));
const settings = new Set(describeConfig(readConfig({}), {}).map(({ variable }) => variable));
/** Node's own variables, which no setting of Quarry is. */
const others = new Set(['NODE_ENV', 'NODE_COMPILE_CACHE']);
/** What the image's build makes, and what it reads for that. */
const built = new Set(['add-ons', 'node_modules', 'dist', 'console/dist']);
const buildNeeds = ['package.json', 'tsconfig.json', 'tsconfig.build.json'];

/** Throws unless the words, from `serve` on, name a command and options that it has. */
function assertCommand(words: string[], where: string): void {
  const { program } = buildProgram();
  let command: Command = program;
  let rest = words;
  for (;;) {
    const next = command.commands.find((each) => each.name() === rest[0]);
    if (!next) break;
    command = next;
    rest = rest.slice(1);
  }
  assert.notEqual(command, program, `${where}: there is no command ${words.join(' ')}`);
  for (const option of rest.filter((word) => word.startsWith('--')))
    assert.ok(
      command.options.some((each) => each.long === option.split('=')[0]),
      `${where}: ${command.name()} has no ${option}`,
    );
}

test('Dockerfile, compose.yaml and units name settings that exist', () => {
  const named: [where: string, variable: string][] = [];
  for (const [, assignments = ''] of dockerfile.matchAll(/^ENV (.*)$/gm))
    for (const [, variable = ''] of assignments.matchAll(/(\w+)=/g)) named.push(['Dockerfile', variable]);
  for (const [name, service] of Object.entries(compose.services))
    if (service.image === 'quarry')
      for (const variable of Object.keys(service.environment ?? {})) named.push([`compose.yaml, ${name}`, variable]);
  for (const unit of units)
    for (const [, variable = ''] of readProjectFile(`deploy/${unit}`).matchAll(/\b((?:QUARRY|DATABASE)_[A-Z_]+)=/g))
      named.push([unit, variable]);
  assert.ok(named.length > 15);
  assert.deepEqual(unknownSettings(named), []);

  assert.deepEqual(unknownSettings([['compose.yaml, http', 'QUARRY_PROT']]), [['compose.yaml, http', 'QUARRY_PROT']]);
});

function unknownSettings(named: [where: string, variable: string][]) {
  return named.filter(([, variable]) => !settings.has(variable) && !others.has(variable));
}

test('the settings of compose.yaml are ones that a process starts with', () => {
  const given = { QUARRY_SECRET: '0f1e2d3c4b5a69788796a5b4c3d2e1f0', POSTGRES_PASSWORD: 'p', S3_SECRET: 's' };
  for (const name of ['http', 'worker']) {
    const environment = Object.fromEntries(
      Object.entries(compose.services[name]?.environment ?? {}).map(([variable, value]) => [
        variable,
        String(value).replace(/\$\{(\w+)(?::-([^}]*))?[^}]*\}/g, (_all, key: keyof typeof given, fallback?: string) =>
          String(given[key] ?? fallback),
        ),
      ]),
    );
    const config = readConfig({ HOST: '0.0.0.0', ...environment });
    assert.equal(config.role, name);
    assert.throws(() => readConfig({ ...environment, PORT: 'many' }));
  }
});

test('the commands that they run exist', () => {
  const [, healthCheck = '[]'] = /^HEALTHCHECK[\s\S]*?CMD (\[.*\])$/m.exec(dockerfile) ?? [];
  assertCommand((JSON.parse(healthCheck) as string[]).slice(2), 'HEALTHCHECK');
  const [, command = '[]'] = /^CMD (\[.*\])$/m.exec(dockerfile) ?? [];
  assertCommand(JSON.parse(command) as string[], 'CMD');
  for (const unit of units)
    for (const [, words = ''] of readProjectFile(`deploy/${unit}`).matchAll(/dist\/main\.js (.*)$/gm))
      assertCommand(words.split(' '), unit);
  for (const [, words = ''] of readProjectFile('deploy/backup.sh').matchAll(/^ *quarry (.*)$/gm))
    assertCommand(words.split(' '), 'backup.sh');

  assert.throws(() => assertCommand(['sreve'], 'a typing mistake'));
  assert.throws(() => assertCommand(['serve', '--no-such-option'], 'a typing mistake'));
});

test('what they copy, mount and wait for is there', () => {
  const copied = [...dockerfile.matchAll(/cp -a (.*) \/out\/ /g)].flatMap(([, from = '']) => from.split(' '));
  assert.deepEqual(missingPaths(copied), [], 'The Dockerfile copies them.');
  assert.deepEqual(missingPaths(['node_modules', 'src', 'srcs']), ['srcs']);
  const kept = readProjectFile('.dockerignore')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1));
  for (const needed of [...buildNeeds, 'package-lock.json', '.npmrc', 'bin', 'src', 'migrations', 'scripts', 'console'])
    assert.ok(kept.includes(needed), `.dockerignore keeps ${needed} out of the image`);
  assert.deepEqual(danglingReferences(compose), []);
  assert.deepEqual(
    danglingReferences({
      services: { http: { depends_on: { db: { condition: 'x' } }, volumes: ['d:/d'] } },
      volumes: {},
    }),
    ['http waits for db', 'http mounts d'],
  );

  const named = units.flatMap((unit) => pathsOfUnit(readProjectFile(`deploy/${unit}`)));
  assert.ok(named.length > 0);
  assert.deepEqual(missingPaths(named), [], 'The units name them.');
  assert.deepEqual(missingPaths(pathsOfUnit('ExecStart=/opt/quarry/node_modules/quarry/bin/querry.js serve')), [
    'bin/querry.js',
  ]);
});

function missingPaths(paths: string[]): string[] {
  return paths.filter((path) => !built.has(path) && !existsSync(join(projectRoot, path)));
}

function pathsOfUnit(text: string): string[] {
  return [...text.matchAll(/node_modules\/quarry\/((?!dist)[\w./-]+)/g)].map(([, path = '']) => path);
}

/** Services and volumes that compose.yaml refers to and does not define. */
function danglingReferences({ services, volumes }: Compose): string[] {
  return Object.entries(services).flatMap(([name, service]) => [
    ...Object.keys(service.depends_on ?? {})
      .filter((other) => !(other in services))
      .map((other) => `${name} waits for ${other}`),
    ...(service.volumes ?? [])
      .map((each) => each.split(':')[0] ?? '')
      .filter((volume) => !(volume in volumes))
      .map((volume) => `${name} mounts ${volume}`),
  ]);
}

test('images are named without a registry, and nothing secret is written down', () => {
  const images = [
    ...[...dockerfile.matchAll(/^FROM (\S+)/gm)].map((match) => match[1] ?? ''),
    ...Object.values(compose.services).map((service) => service.image ?? ''),
  ];
  assert.deepEqual(images.filter(namesRegistry), []);
  const variables = Object.values(compose.services).flatMap((service) => Object.entries(service.environment ?? {}));
  assert.deepEqual(variables.filter(isWrittenSecret), []);
  assert.doesNotMatch(dockerfile, /SECRET|PASSWORD|DATABASE_URL=/);
  assert.match(dockerfile, /^USER (?!root)\w+$/m);

  assert.ok(namesRegistry('registry.example.com/node:24') && !namesRegistry('minio/minio:1'));
  assert.ok(isWrittenSecret(['QUARRY_SECRET', 'abc']) && !isWrittenSecret(['QUARRY_SECRET', `\${QUARRY_SECRET:?}`]));
});

function namesRegistry(image: string): boolean {
  return image.includes('/') && /[.:]/.test(image.split('/')[0] ?? '');
}

function isWrittenSecret([variable, value]: [string, unknown]): boolean {
  return /SECRET|PASSWORD/.test(variable) && !/^\$\{\w+:\?/.test(String(value));
}
