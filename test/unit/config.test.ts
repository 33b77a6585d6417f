import assert from 'node:assert/strict';
import { test } from 'node:test';
import { warnOfUnknownSettings } from '../../src/cli/operate/unknown-settings.ts';
import { ConfigError, readConfig, settingNames } from '../../src/config/config.ts';
import { parseAllowList } from '../../src/content/fetch/allow-list.ts';

/** Settings in which any text is valid, or which are checked where they are read. */
const anyText: Record<string, string> = {
  QUARRY_DATA_DIR: 'a path',
  QUARRY_ERASURES_DIR: 'a path',
  QUARRY_OCR_DATA_DIR: 'a path',
  QUARRY_PROFILE: 'a path',
  QUARRY_MODELS_FILE: 'src/llm/operator-models.ts reads the file',
  QUARRY_ANSWERS_JUDGE: 'src/llm/operator-models.ts compares it with the models',
  QUARRY_CELLS: 'src/cells/settings.ts reads it',
  OTEL_EXPORTER_OTLP_HEADERS: 'src/tracing/start.ts reads it',
  QUARRY_SECRET_PREVIOUS: 'any text may have been the secret',
  AWS_ACCESS_KEY_ID: 'it is signed with, and the service knows its form',
  AWS_SECRET_ACCESS_KEY: 'it is signed with, and the service knows its form',
  AWS_SESSION_TOKEN: 'it is signed with, and the service knows its form',
  QUARRY_BACKUP_S3_ACCESS_KEY_ID: 'it is signed with, and the service knows its form',
  QUARRY_BACKUP_S3_SECRET_ACCESS_KEY: 'it is signed with, and the service knows its form',
  OTEL_SERVICE_NAME: 'a name',
  QUARRY_EMBED_MODEL: 'a name',
  QUARRY_EMBED_QUERY_PREFIX: 'a text',
  QUARRY_EMBED_DOCUMENT_PREFIX: 'a text',
  QUARRY_LLM_MODEL: 'a name',
  QUARRY_RERANK_MODEL: 'a name',
  QUARRY_APP: 'a name',
  QUARRY_SANDBOX: 'a name',
};

function problemOf(variable: string, value: string): string | undefined {
  try {
    readConfig({ [variable]: value });
    return undefined;
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.problems.find((problem) => problem.startsWith(`${variable} `));
  }
}

test('every setting refuses what it cannot use, by name, with the form of its value and an example', () => {
  for (const variable of settingNames) {
    const problem = problemOf(variable, 'nö way') ?? '';
    // What one setting requires of another is not a judgement of its value.
    if (anyText[variable] !== undefined) assert.doesNotMatch(problem, / must be /, variable);
    else assert.match(problem, /must be (.+, such as \S|one of |true or false)|use `openssl/, variable);
  }
});

test('values that look right are refused where they are not', () => {
  const wrong: [variable: string, ...values: string[]][] = [
    ['PORT', 'abc', '70000', '-1', '80.5', '1e3', '0x50', '80 81', '80;'],
    ['HOST', '127.0.0.1:80', 'http://localhost', '127.0.0', '256.0.0.1', '[::1]', 'a b', '-a'],
    ['QUARRY_CORS_ORIGINS', 'app.example.com', 'https://a.example/path', 'https://a.example/', 'https://a.example,'],
    ['QUARRY_TRUST_PROXY', '10.0.0.0/33', '*', 'proxy.internal', '10.0.0.1;10.0.0.2', '::1/129'],
    ['QUARRY_FETCH_ALLOW', 'http://wiki.corp', 'wiki.corp:8080', '10.0.0.0/8/8', '10.0.0', 'wiki,,corp'],
    ['QUARRY_FETCH_CONTACT', 'us', 'crawler@exämple.com'],
    ['QUARRY_LLM_URL', 'localhost:11434', 'http:host', 'ftp://host', 'http://'],
    ['QUARRY_LLM_KEY', 'sk-…', 'sk 1', 'sk\n1'],
    ['QUARRY_METRICS_TOKEN', 'tökens'],
    ['DATABASE_URL', 'localhost/quarry', 'mysql://localhost/quarry', 'postgres:'],
    ['QUARRY_PROCESSES', '0', '-1', 'all'],
    ['QUARRY_S3_PRESIGN', 'maybe', '2'],
    ['QUARRY_EXTRACTOR_TYPES', 'pdf,word'],
    ['QUARRY_OCR_LANGUAGES', 'eng+deu'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.5', '50%'],
  ];
  for (const [variable, ...values] of wrong)
    for (const value of values) assert.notEqual(problemOf(variable, value), undefined, `${variable}=${value}`);
  assert.doesNotMatch(problemOf('QUARRY_LLM_KEY', 'sk secret') ?? '', /secret/);
  assert.doesNotMatch(problemOf('DATABASE_URL', 'host/x?password=hidden') ?? '', /hidden/);
});

test('values of every form are accepted', () => {
  const right: Record<string, string[]> = {
    HOST: ['0.0.0.0', '::', '::1', 'localhost', 'db_1.internal'],
    QUARRY_CORS_ORIGINS: [
      '*',
      'https://a.example, http://localhost:3000',
      'capacitor://localhost,chrome-extension://abc',
    ],
    QUARRY_TRUST_PROXY: ['loopback,10.0.0.0/8,::1/128,192.0.2.1'],
    QUARRY_FETCH_ALLOW: ['10.20.0.0/16, wiki.corp,*.intra.example,[::1],fd00::/8,LOCALHOST'],
    QUARRY_FETCH_CONTACT: ['crawler@example.com', 'https://example.com/bot'],
    QUARRY_LLM_KEY: ['sk-1_a.b/c+d='],
    QUARRY_METRICS_PORT: ['0'],
  };
  for (const [variable, values] of Object.entries(right))
    for (const value of values) assert.equal(problemOf(variable, value), undefined, `${variable}=${value}`);
  // What the setting accepts, the fetcher reads.
  for (const value of right.QUARRY_FETCH_ALLOW ?? [])
    parseAllowList(readConfig({ QUARRY_FETCH_ALLOW: value }).fetchAllow);
});

test('a variable that is nearly a setting is named with the setting', () => {
  const found = warnOfUnknownSettings({
    QUARRY_PROCESES: '2',
    QUARRY_ROLE: 'all',
    QUARRY_ELSEWHERE_ENTIRELY: 'x',
    QUARRY_PORT: '8081',
    HOST: '',
  });
  assert.deepEqual(
    found.map(({ name }) => name),
    ['QUARRY_PROCESES', 'QUARRY_ELSEWHERE_ENTIRELY', 'QUARRY_PORT'],
  );
  assert.match(found[2]?.warning ?? '', /Did you mean PORT\?$/);
  assert.match(found[0]?.warning ?? '', /Did you mean QUARRY_PROCESSES\?$/);
  assert.match(found[1]?.warning ?? '', /no such setting exists$/);
});
