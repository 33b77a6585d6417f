import type { Command } from 'commander';
import { readCount, readShare } from './arguments.ts';
import type { EvalOptions } from './eval.ts';
import type { ExtractOptions } from './extract.ts';
import type { IngestOptions } from './ingest.ts';
import type { KvListOptions, KvOptions, KvPutOptions, KvWatchOptions } from './kv.ts';
import type { InvokeOptions } from './runs.ts';
import type { SearchOptions } from './search.ts';
import { type ClientOptions, type Session, withSession } from './session.ts';
import type { KeyOptions } from './token.ts';
import type { UploadOptions } from './upload.ts';

/** Receives the exit code of a command. */
type SetCode = (code: number) => void;

/** The commands that call a local or remote server over HTTP, with the user's own credential. */
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
    .description('upload files')
    .option('--name <name>', 'filename on the server (for one file; required for -)')
    .option('--type <type>', 'media type; default: from the name')
    .option('--team <team>', 'team that owns it')
    .option('--user <user>', 'user that owns it')
    .option('--agent <agent>', 'agent that it belongs to')
    .option('--org <org>', 'organisation that it belongs to')
    .option('--share', 'create a permanent public URL (images only)')
    .addHelpText(
      'after',
      examples(['quarry upload report.pdf photo.jpg', 'tar c notes | quarry upload - --name notes.tar']),
    )
    .action(async (paths: string[], options: ClientOptions & UploadOptions) => {
      const { upload } = await import('./upload.ts');
      await run(options, (session) => upload(session, paths, options));
    });
  withConnection(program.command('extract <source>'))
    .description('extract a file, a page or a site as Markdown to standard output')
    .option('--site', 'follow links to pages on the same host')
    .option('--max-pages <number>', 'maximum number of pages of a site (default 100)', readCount)
    .option('--include <pattern...>', 'only pages whose path begins with this; * matches anything')
    .option('--exclude <pattern...>', 'no pages whose path begins with this')
    .option('--out <directory>', 'write one .md file for each page to this directory instead')
    .option('--agent <agent>', 'agent that owns the job and its outputs')
    .option('--org <org>', 'organisation that owns them')
    .option('--name <name>', 'filename of standard input (-)')
    .option('--type <type>', 'media type of the file; default: from the name')
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
    .description('add files, standard input (-) or pages (URLs) to a knowledge source')
    .option('--title <title>', 'title of the document; default: its name')
    .option('--name <name>', 'filename of standard input')
    .option('--type <type>', 'media type; default: from the name')
    .option('--metadata <json>', 'metadata of the document, a JSON object for search filters')
    .option('--dedupe', 'reuse an existing document with the same bytes')
    .option('--pull', "pull the source's configured site or pages again instead")
    .option('--no-wait', 'do not wait until the document can be searched')
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
    .description('search a source (cso_…) or all sources of an agent (agt_… or its lookup key)')
    .option('--limit <number>', 'maximum number of passages (default 10)', readCount)
    .option('--mode <mode>', 'hybrid (default), vector or fulltext')
    .option('--min-similarity <number>', 'minimum cosine similarity of vector hits, 0 to 1', readShare)
    .option('--filter <json>', 'conditions on the metadata of documents')
    .addHelpText('after', examples(['quarry search cso_… how do refunds work', 'quarry search helper refunds --json']))
    .action(async (target: string, words: string[], options: ClientOptions & SearchOptions) => {
      const { search } = await import('./search.ts');
      await run(options, (session) => search(session, target, words.join(' '), options));
    });
  withConnection(program.command('eval <target>'))
    .description('score the search of a source or agent by your own questions, for each setting')
    .requiredOption('--queries <file>', 'a line of JSON for each question: {"query": …, "relevant": {"cdo_…": 2}}')
    .option(
      '--setting <json>',
      'members of a search to compare with the first; repeatable; default: each mode',
      collect,
    )
    .addHelpText(
      'after',
      examples([
        'quarry eval cso_… --queries questions.jsonl',
        `quarry eval cso_… --queries questions.jsonl --setting '{"mode":"fulltext"}' --setting '{"mode":"hybrid"}'`,
      ]),
    )
    .action(async (target: string, options: ClientOptions & EvalOptions) => {
      const { evaluate } = await import('./eval.ts');
      await run(options, (session) => evaluate(session, target, options));
    });
}

function addKvCommands(program: Command, run: Run): void {
  const kv = program.command('kv').description("read and write users' key-value entries");
  const userOption = 'owner of the entry; required with a secret key or developer token';
  withConnection(kv.command('get <key>'))
    .description('print the value, byte for byte')
    .option('--user <user>', userOption)
    .action(async (key: string, options: ClientOptions & KvOptions) => {
      const { get } = await import('./kv.ts');
      await run(options, (session) => get(session, key, options));
    });
  withConnection(kv.command('put <key> [value]'))
    .description('create or overwrite an entry; without a value (or with -), read it from standard input')
    .option('--user <user>', userOption)
    .option('--ttl <seconds>', 'the entry ceases to exist after this many seconds', readCount)
    .addHelpText(
      'after',
      examples(['quarry kv put theme dark --user usr_…', 'quarry kv put notes --user usr_… < notes.txt']),
    )
    .action(async (key: string, value: string | undefined, options: ClientOptions & KvPutOptions) => {
      const { put } = await import('./kv.ts');
      await run(options, (session) => put(session, key, value, options));
    });
  withConnection(kv.command('list'))
    .description('list entries, 100 per page')
    .option('--user <user>', 'only entries of this user')
    .option('--prefix <prefix>', 'only keys with this prefix')
    .option('--page <number>', 'page number, from 1', readCount)
    .action(async (options: ClientOptions & KvListOptions) => {
      const { list } = await import('./kv.ts');
      await run(options, (session) => list(session, options));
    });
  withConnection(kv.command('increment <key> [by]'))
    .description('add to a number (by default 1) and print the sum')
    .option('--user <user>', userOption)
    .addHelpText('after', examples(['quarry kv increment visits --user usr_…', 'quarry kv increment stock -- -3']))
    .action(async (key: string, by: string | undefined, options: ClientOptions & KvOptions) => {
      const { increment } = await import('./kv.ts');
      await run(options, (session) => increment(session, key, Number(by ?? 1), options));
    });
  withConnection(kv.command('watch [key]'))
    .description('print changes of one entry, or of all, as they happen')
    .option('--user <user>', userOption)
    .option('--prefix <prefix>', 'only keys with this prefix')
    .option('--limit <number>', 'end after this many changes', readCount)
    .action(async (key: string | undefined, options: ClientOptions & KvWatchOptions) => {
      const { watch } = await import('./kv.ts');
      await run(options, (session) => watch(session, key, options));
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
    .option('--idempotency-key <key>', 'a repeated key does not start a second run')
    .option('--no-wait', 'print the id of the run and exit')
    .addHelpText('after', examples([`quarry runs invoke greet --payload '{"name": "Ada"}'`]))
    .action(async (automation: string, options: ClientOptions & InvokeOptions) => {
      const { invoke } = await import('./runs.ts');
      await run(options, (session) => invoke(session, automation, options));
    });
}

function addTokenCommands(program: Command, run: Run): void {
  const token = program.command('token').description("create users' tokens; create, list and revoke API keys");
  withConnection(token.command('user <user>'))
    .description('create an access token for a user (id or e-mail) and print it')
    .addHelpText('after', examples(['QUARRY_TOKEN=$(quarry token user ada@example.com) quarry kv list']))
    .action(async (named: string, options: ClientOptions) => {
      const { user } = await import('./token.ts');
      await run(options, (session) => user(session, named));
    });
  withConnection(token.command('key'))
    .description('create an API key and print it; it is not shown again')
    .option('--publishable', 'create a key that only allows sign-in and is safe to publish; default: a secret key')
    .option('--name <name>', 'name of the key')
    .option('--in-sandbox <sandbox>', 'create a key that works only in this sandbox')
    .action(async (options: ClientOptions & KeyOptions) => {
      const { key } = await import('./token.ts');
      await run(options, (session) => key(session, options));
    });
  withConnection(token.command('keys'))
    .description('list API keys, without their secret part')
    .action(async (options: ClientOptions) => {
      const { keys } = await import('./token.ts');
      await run(options, keys);
    });
  withConnection(token.command('revoke <key>'))
    .description('revoke an API key (dak_…) immediately')
    .action(async (id: string, options: ClientOptions) => {
      const { revoke } = await import('./token.ts');
      await run(options, (session) => revoke(session, id));
    });
}

function withConnection(command: Command): Command {
  return command
    .option('--url <url>', 'server (QUARRY_API_URL; default: from the data directory)')
    .option('--key <key>', 'API key (QUARRY_API_KEY; default: from the data directory)')
    .option('--token <token>', 'bearer token of a user or developer (QUARRY_TOKEN)')
    .option('--app <app>', 'app that a developer token acts in (QUARRY_APP)')
    .option('--sandbox <sandbox>', 'sandbox that a developer token acts in (QUARRY_SANDBOX)')
    .option('--json', 'print JSON, one value per line')
    .configureHelp({ showGlobalOptions: false });
}

function examples(lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}\n`;
}

/** The values of an option that may be given several times. */
function collect(value: string, before: string[] = []): string[] {
  return [...before, value];
}
