import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, test } from 'node:test';
import { credentialsFile } from '../../../src/boot/credentials-file.ts';
import { samplePdf } from '../../../src/content/parse/sample-pdf.ts';
import { htmlPage, startSite } from '../../support/fixture-site.ts';
import {
  createClone,
  matchesShown,
  readBlocks,
  readPage,
  runSteps,
  type Step,
  startCommandProcess,
  startPickServer,
  stepsOf,
} from '../../support/guides.ts';
import { startLanguageModel } from '../../support/language-model.ts';
import { startTestServer } from '../../support/server.ts';
import { projectRoot } from '../../support/source.ts';

/*
 * What the guides say is run as they say it, in a directory like a clone, with a new app: one after the other in one shell,
 * and by `npm run prove` each page in a shell of its own. https://example.com is a site of this machine here.
 */

const pages = [
  'README.md',
  'docs/quickstart.md',
  'docs/concepts.md',
  'docs/authentication.md',
  'docs/files.md',
  'docs/extraction.md',
  'docs/structured-extraction.md',
  'docs/crawling.md',
  'docs/knowledge.md',
  'docs/search.md',
  'docs/automations.md',
  'docs/workflows-in-code.md',
  'docs/key-value.md',
  'docs/webhooks.md',
  'docs/retries.md',
  'docs/cli.md',
  'docs/mcp.md',
  'docs/verify.md',
  'docs/typescript.md',
  'docs/python.md',
  'docs/agent-tools.md',
  'docs/openai.md',
  'docs/self-hosting.md',
  'skills/quarry/SKILL.md',
];
/** What every other page continues from, as each of them says. */
const opening = stepsOf(readPage('docs/quickstart.md')).filter(
  ({ heading, language }) => language === 'sh' && ['Your shell', 'A user'].includes(heading),
);
const withoutOpening = ['README.md', 'docs/quickstart.md', 'docs/self-hosting.md'];
/** They show how the commands of all guides are defined, and run them as they are. */
const asDefined = ['README.md', 'docs/quickstart.md'];
/** The README begins with the commands that install, serve and test. */
const isRun = (page: string) => (step: Step) => page !== 'README.md' || step.heading !== 'Quarry';

/** `npm test` runs the README by itself and the guides in one shell; `npm run prove` also runs each page by itself. */
const isWhole = process.env.QUARRY_GUIDES === 'each';

const site = await startSite({
  '/': htmlPage('Example Domain'),
  '/article': htmlPage('An article'),
  '/docs/': htmlPage('Docs', ['/docs/install', '/docs/use', '/blog/news']),
  '/docs/install': htmlPage('Install'),
  '/docs/use': htmlPage('Use'),
  '/blog/news': htmlPage('News'),
});
const model = await startLanguageModel();
model.script = () =>
  '{"company":"ACME GmbH","items":[{"name":"Bolt","price":3.5},{"name":"Nut","price":1.2}],"due":null}';
const server = await startTestServer({
  env: {
    QUARRY_MCP_OAUTH: 'true',
    QUARRY_FETCH_ALLOW: '127.0.0.1',
    QUARRY_LLM_URL: model.url,
    QUARRY_LLM_MODEL: 'small',
  },
});
const picks = await startPickServer();
/** `npm run prove` starts a process for each command. */
const commands = isWhole ? undefined : await startCommandProcess();
const quick = { ...picks, ...commands };
after(async () => {
  await picks.close();
  await commands?.close();
  await server.close();
  await site.close();
  await model.close();
});
const here = (step: Step): Step => ({ ...step, text: step.text.replaceAll('https://example.com', site.origin) });

/** A directory like a clone that has just started its first server. */
async function createGuide(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'quarry-guide-'));
  // An embedded database that root starts runs as another user, who must reach it.
  chmodSync(directory, 0o755);
  const { app, developerToken, secretKey, publishableKey } = await server.provision.app();
  createClone(directory, credentialsFile(server.baseUrl, { app: app.id, developerToken, secretKey, publishableKey }));
  for (const place of ['.', 'data/try']) writeFileSync(join(directory, place, 'report.pdf'), samplePdf());
  return directory;
}

for (const page of isWhole ? pages : ['README.md'])
  test(`what ${page} shows works as it is written`, async () => {
    const before = withoutOpening.includes(page) ? [] : opening;
    await runHere(before, stepsOfPage(page), asDefined.includes(page) ? {} : { quick });
  });

test('the guides work one after the other in one shell, show what they print, and leave nothing that git would add', {
  timeout: 1_200_000,
}, async () => {
  // The page of the command lists all that a user has.
  const first = ['docs/quickstart.md', 'docs/cli.md'];
  const inOrder = [...first, ...pages.filter((page) => !first.includes(page) && !withoutOpening.includes(page))];
  const { left } = await runHere([], inOrder.flatMap(stepsOfPage), { timeoutMs: 900_000, quick });
  assert.deepEqual(left, []);
});

/** A step that knows its page. */
type PageStep = Step & { page: string };

function stepsOfPage(page: string): PageStep[] {
  const steps = stepsOf(readPage(page)).filter(isRun(page)).map(here);
  assert.ok(steps.length > 0, `${page} shows something that can be run.`);
  return steps.map((step) => ({ ...step, page }));
}

/** Runs the steps in a new directory and compares what they print. Returns the names of the files that they leave. */
async function runHere(before: Step[], steps: PageStep[], options: Parameters<typeof runSteps>[3]) {
  const directory = await createGuide();
  try {
    const names = readdirSync(directory);
    const { code, errors, outputs } = await runSteps(directory, before, steps, options);
    const failed = code === 0 ? -1 : outputs.findLastIndex((output) => output !== undefined);
    const place = steps[failed] === undefined ? 'the opening' : `${steps[failed].page}:${steps[failed].line}`;
    assert.equal(code, 0, `${place}: ${errors}\n${outputs[failed] ?? ''}`);
    const differing = steps.flatMap(({ page, line, output = '…' }, at) => {
      const printed = outputs[at] ?? '';
      const isShown = matchesShown(printed, output.replaceAll('https://example.com', site.origin));
      return isShown ? [] : [`${page}:${line} prints\n${printed}`];
    });
    assert.deepEqual(differing, []);
    const ours = /^(step-\d+\.(js|py|out)|page\.sh)$/;
    return { left: readdirSync(directory).filter((name) => !names.includes(name) && !ours.test(name)) };
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

test('the programs of the guides have no type errors', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'quarry-guide-'));
  try {
    createClone(directory, {});
    const programs = pages.flatMap((page) =>
      stepsOf(readPage(page))
        .filter(({ language }) => language === 'ts')
        .map(({ text, line }) => ({ name: `${basename(page)}-line-${line}.ts`, text })),
    );
    for (const { name, text } of programs) writeFileSync(join(directory, name), text);
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2024'];
    const args = [...options, '--types', 'node', ...programs.map(({ name }) => name)];
    const compiler = spawn(join(projectRoot, 'node_modules', '.bin', 'tsc'), args, { cwd: directory });
    let said = '';
    compiler.stdout.on('data', (chunk) => {
      said += String(chunk);
    });
    const code = await new Promise((resolve) => compiler.once('close', resolve));
    assert.deepEqual([code, said], [0, '']);
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
});

test('a block is left out only with a reason, and what a page shows is compared', () => {
  const blocks = readBlocks(
    '# A\n```sh\necho 1\n```\nprints\n```text\n1\n```\n## B\n```sh\n# Not run by the tests: it would stop them.\nx\n```\n```json\n{}\n```\n```ts\n1;\n```\n',
  );
  assert.deepEqual(
    stepsOf(blocks).map(({ language, heading, output, line }) => [language, heading, output, line]),
    [
      ['sh', 'A', '1\n', 2],
      ['ts', 'B', undefined, 17],
    ],
  );
  assert.ok(matchesShown('id atr_123 done\n', 'id atr_… done\n'));
  assert.ok(!matchesShown('id atr_123 failed\n', 'id atr_… done\n'));
});
