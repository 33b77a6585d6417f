import { type Command, InvalidArgumentError } from 'commander';
import type { ExtractOptions } from './extract.ts';
import type { IngestOptions } from './ingest.ts';
import type { KvListOptions, KvOptions } from './kv.ts';
import type { InvokeOptions } from './runs.ts';
import type { SearchOptions } from './search.ts';
import { type ClientOptions, type Session, withSession } from './session.ts';
import type { KeyOptions } from './token.ts';
import type { UploadOptions } from './upload.ts';

/** Takes the exit code of a command when it has run. */
type SetCode = (code: number) => void;

/** The commands that people use against a server, this machine's or another: over HTTP, with their own credential. */
export function addPeopleCommands(program: Command, setCode: SetCode): void {
  program.commandsGroup('Use a server:');
  const run = async (options: ClientOptions, work: (session: Session) => Promise<number>) =>
    setCode(await withSession(options, work));
  addFileCommands(program, run);
  addKnowledgeCommands(program, run);
  addKvCommands(program, run);
  addRunCommands(program, run);
  addTokenCommands(program, run);
}

type Run = (options: ClientOptions, work: (session: Session) => Promise<number>) => Promise<void>;

function addFileCommands(program: Command, run: Run): void {
  withConnection(program.command('upload <files...>'))
    .description('upload files, each streamed from disk')
    .option('--name <name>', 'filename at the server (for one file; needed for -)')
    .option('--type <type>', 'media type; default: by the name')
    .option('--team <team>', 'team that owns it')
    .option('--user <user>', 'user that owns it')
    .option('--agent <agent>', 'agent that it belongs to')
    .option('--org <org>', 'organisation that it belongs to')
    .option('--share', 'make a lasting public URL (images only)')
    .addHelpText(
      'after',
      examples(['quarry upload report.pdf photo.jpg', 'tar c notes | quarry upload - --name notes.tar']),
    )
    .action(async (paths: string[], options: ClientOptions & UploadOptions) => {
      const { upload } = await import('./upload.ts');
      await run(options, (session) => upload(session, paths, options));
    });
  withConnection(program.command('extract <source>'))
    .description('turn a file, a page or a site into Markdown on standard output')
    .option('--site', 'follow the links of the page, on its own host')
    .option('--max-pages <number>', 'pages of a site at most (default 100)', readCount)
    .option('--include <pattern...>', 'only pages whose path begins so; * stands for anything')
    .option('--exclude <pattern...>', 'no pages whose path begins so')
    .option('--out <directory>', 'write one .md file for each page there instead')
    .option('--agent <agent>', 'agent that owns the job and its outputs')
    .option('--org <org>', 'organisation that owns them')
    .option('--name <name>', 'filename of what comes on standard input (-)')
    .option('--type <type>', 'media type of the file; default: by the name')
    .addHelpText(
      'after',
      `${examples([
        'quarry extract report.pdf > report.md',
        'quarry extract https://example.com/article',
        'quarry extract https://example.com/docs/ --site --max-pages 50 --include /docs/ --out docs',
      ])}\nThe source file and its Markdown stay at the server as files; --json names them.\n`,
    )
    .action(async (source: string, options: ClientOptions & ExtractOptions) => {
      const { extract } = await import('./extract.ts');
      await run(options, (session) => extract(session, source, options));
    });
}

function addKnowledgeCommands(program: Command, run: Run): void {
  withConnection(program.command('ingest <source> [documents...]'))
    .description('put files, standard input (-) or pages (URLs) into a knowledge source')
    .option('--title <title>', 'title of the document; default: its name')
    .option('--name <name>', 'filename of what comes on standard input')
    .option('--type <type>', 'media type; default: by the name')
    .option('--metadata <json>', 'metadata of the document, a JSON object that searches can filter by')
    .option('--dedupe', 'reuse the document of the same bytes')
    .option('--pull', "run the source's own configuration again instead (sites, pages)")
    .option('--no-wait', 'do not wait until it can be searched')
    .addHelpText(
      'after',
      examples([
        'quarry ingest cso_… handbook.pdf faq.md --dedupe',
        'git log | quarry ingest cso_… - --title "What changed"',
        'quarry ingest cso_… https://example.com/article',
        'quarry ingest cso_… --pull',
      ]),
    )
    .action(async (source: string, paths: string[], options: ClientOptions & IngestOptions) => {
      const { ingest } = await import('./ingest.ts');
      await run(options, (session) => ingest(session, source, paths, options));
    });
  withConnection(program.command('search <target> <query...>'))
    .description('search a source (cso_…), or everything of an agent (agt_… or its lookup key)')
    .option('--limit <number>', 'passages at most (default 10)', readCount)
    .option('--mode <mode>', 'hybrid (default), vector or fulltext')
    .option('--min-similarity <number>', 'least cosine similarity of vector hits, 0 to 1', readShare)
    .option('--filter <json>', 'conditions on the metadata of documents')
    .addHelpText('after', examples(['quarry search cso_… how do refunds work', 'quarry search helper refunds --json']))
    .action(async (target: string, words: string[], options: ClientOptions & SearchOptions) => {
      const { search } = await import('./search.ts');
      await run(options, (session) => search(session, target, words.join(' '), options));
    });
}

function addKvCommands(program: Command, run: Run): void {
  const kv = program.command('kv').description("read and write users' key-value entries");
  const userOption = 'whose entry; needed with a secret key or developer token';
  withConnection(kv.command('get <key>'))
    .description('print the value, byte for byte')
    .option('--user <user>', userOption)
    .action(async (key: string, options: ClientOptions & KvOptions) => {
      const { get } = await import('./kv.ts');
      await run(options, (session) => get(session, key, options));
    });
  withConnection(kv.command('put <key> [value]'))
    .description('create or overwrite; without a value (or with -) it is read from standard input')
    .option('--user <user>', userOption)
    .addHelpText(
      'after',
      examples(['quarry kv put theme dark --user usr_…', 'quarry kv put notes --user usr_… < notes.txt']),
    )
    .action(async (key: string, value: string | undefined, options: ClientOptions & KvOptions) => {
      const { put } = await import('./kv.ts');
      await run(options, (session) => put(session, key, value, options));
    });
  withConnection(kv.command('list'))
    .description('list entries, 100 a page')
    .option('--user <user>', 'only of this user')
    .option('--prefix <prefix>', 'only keys that begin so')
    .option('--page <number>', 'page, from 1', readCount)
    .action(async (options: ClientOptions & KvListOptions) => {
      const { list } = await import('./kv.ts');
      await run(options, (session) => list(session, options));
    });
  withConnection(kv.command('delete <key>'))
    .description('delete an entry')
    .option('--user <user>', userOption)
    .action(async (key: string, options: ClientOptions & KvOptions) => {
      const { remove } = await import('./kv.ts');
      await run(options, (session) => remove(session, key, options));
    });
}

function addRunCommands(program: Command, run: Run): void {
  const runs = program.command('runs').description('start and follow runs of automations');
  withConnection(runs.command('watch <run>'))
    .description('print the journal of a run until it ends; exits 1 unless it completed')
    .action(async (id: string, options: ClientOptions) => {
      const { watch } = await import('./runs.ts');
      await run(options, (session) => watch(session, id));
    });
  withConnection(runs.command('invoke <automation>'))
    .description('start a run of an automation (its id or lookup key) and watch it')
    .option('--payload <json>', 'payload: JSON, @file, or - for standard input')
    .option('--idempotency-key <key>', 'the same key starts no second run')
    .option('--no-wait', 'print the id of the run and stop')
    .addHelpText('after', examples([`quarry runs invoke greet --payload '{"name": "Ada"}'`]))
    .action(async (automation: string, options: ClientOptions & InvokeOptions) => {
      const { invoke } = await import('./runs.ts');
      await run(options, (session) => invoke(session, automation, options));
    });
}

function addTokenCommands(program: Command, run: Run): void {
  const token = program.command('token').description("make users' tokens, and make, list and revoke API keys");
  withConnection(token.command('user <user>'))
    .description('mint an access token for a user (id or e-mail) and print it')
    .addHelpText('after', examples(['QUARRY_TOKEN=$(quarry token user ada@example.com) quarry kv list']))
    .action(async (named: string, options: ClientOptions) => {
      const { user } = await import('./token.ts');
      await run(options, (session) => user(session, named));
    });
  withConnection(token.command('key'))
    .description('make an API key and print it, this once')
    .option('--publishable', 'a key for sign-in alone, safe to ship; default: a secret key')
    .option('--name <name>', 'what it is for')
    .option('--in-sandbox <sandbox>', 'a key that works in that sandbox alone')
    .action(async (options: ClientOptions & KeyOptions) => {
      const { key } = await import('./token.ts');
      await run(options, (session) => key(session, options));
    });
  withConnection(token.command('keys'))
    .description('list API keys, without what would open anything')
    .action(async (options: ClientOptions) => {
      const { keys } = await import('./token.ts');
      await run(options, keys);
    });
  withConnection(token.command('revoke <key>'))
    .description('revoke an API key by its id (dak_…), at once')
    .action(async (id: string, options: ClientOptions) => {
      const { revoke } = await import('./token.ts');
      await run(options, (session) => revoke(session, id));
    });
}

function withConnection(command: Command): Command {
  return command
    .option('--url <url>', 'server (QUARRY_API_URL; default: the one of the data directory)')
    .option('--key <key>', 'API key (QUARRY_API_KEY; default: the one of the data directory)')
    .option('--token <token>', 'bearer token of a user or developer (QUARRY_TOKEN)')
    .option('--app <app>', 'app that a developer token acts in (QUARRY_APP)')
    .option('--sandbox <sandbox>', 'sandbox that a developer token acts in (QUARRY_SANDBOX)')
    .option('--json', 'print JSON, one value on a line')
    .configureHelp({ showGlobalOptions: false });
}

function examples(lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}\n`;
}

function readCount(text: string): number {
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1) throw new InvalidArgumentError('It must be a whole number from 1.');
  return count;
}

function readShare(text: string): number {
  const share = Number(text);
  if (text.trim() === '' || !(share >= 0 && share <= 1)) throw new InvalidArgumentError('It must be from 0 to 1.');
  return share;
}
