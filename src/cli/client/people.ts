import type { Command } from 'commander';
import { readCount, readNumber, readShare } from '../arguments.ts';
import { addDevelopCommands } from '../develop/commands.ts';
import { addActionCommands } from './action-commands.ts';
import { formatExamples, type Run, withConnection } from './command-parts.ts';
import type { DownloadOptions } from './download.ts';
import { addErasureCommands } from './erasure-commands.ts';
import type { EvalOptions } from './eval.ts';
import type { EventWatchOptions } from './events.ts';
import type { ExtractOptions } from './extract.ts';
import type { IngestOptions } from './ingest.ts';
import { addKvCommands } from './kv-commands.ts';
import type { ListenOptions } from './listen.ts';
import type { MoveOptions } from './move.ts';
import { findOwners } from './names.ts';
import { addResourceCommands } from './resource-commands.ts';
import { addRunCommands } from './run-commands.ts';
import type { SearchOptions } from './search.ts';
import { type ClientOptions, type Session, withSession } from './session.ts';
import { addSignInCommands } from './sign-in-commands.ts';
import type { KeyOptions } from './token.ts';
import type { UploadOptions } from './upload.ts';

/** Receives the exit code of a command. */
type SetCode = (code: number) => void;

/** Adds the commands that call a local or remote server over HTTP with the user's credential. */
export function addPeopleCommands(program: Command, setCode: SetCode): void {
  program.commandsGroup('Use a server:');
  const run = async (options: ClientOptions, work: (session: Session) => Promise<number>) =>
    setCode(await withSession(options, work));
  addSignInCommands(program, run, setCode);
  addResourceCommands(program, run);
  addFileCommands(program, run);
  addKnowledgeCommands(program, run);
  addKvCommands(program, run);
  addRunCommands(program, run);
  addTokenCommands(program, run);
  addActionCommands(program, run);
  addErasureCommands(program, run);
  addOtherCommands(program, run);
  addLedgerCommands(program, run);
  addEventCommands(program, run);
  addDevelopCommands(program, run, setCode);
}

/** Adds commands that do more than send one request. */
function addOtherCommands(program: Command, run: Run): void {
  const groupOf = (name: string) => program.commands.find((each) => each.name() === name) ?? program.command(name);
  withConnection(program.command('mcp'))
    .description('connect an editor: MCP on standard input and output, with the stored credential')
    .action(async (options: ClientOptions) => {
      const { serve } = await import('./mcp.ts');
      await run(options, serve);
    });
  withConnection(program.command('move'))
    .description('copy an app from another server to this one; repeat it to copy what is new')
    .requiredOption('--from <url>', 'the server to copy from')
    .option('--from-key <file>', 'file with a secret key of that server; default: standard input', '-')
    .option(
      '--only <kinds>',
      'only these kinds, separated by commas: orgs, users, teams, agents, files, kv, sources, automations',
    )
    .option('--map <file>', 'records which id became which', 'moved.json')
    .addHelpText('after', formatExamples(['quarry move --from https://api.example.com < old-key.txt']))
    .action(async (options: ClientOptions & MoveOptions) => {
      const { move } = await import('./move.ts');
      await run(options, (session) => move(session, options));
    });
  withConnection(groupOf('documents').command('read <document>'))
    .description('print the text of a document')
    .action(async (document: string, options: ClientOptions) => {
      const { read } = await import('./documents.ts');
      await run(options, (session) => read(session, document));
    });
  withConnection(groupOf('files').command('download <file>'))
    .description('write the bytes of a file to a new file of its name')
    .option('--out <path>', 'write them to this new file instead; - is standard output')
    .action(async (file: string, options: ClientOptions & DownloadOptions) => {
      const { download } = await import('./download.ts');
      await run(options, (session) => download(session, file, options));
    });
  withConnection(groupOf('extractions').command('watch <extraction>'))
    .description('wait for an extraction of a site or link, and print its Markdown')
    .option('--out <directory>', 'write one .md file for each page to this directory instead')
    .action(async (id: string, options: ClientOptions & Pick<ExtractOptions, 'out'>) => {
      const { watchExtraction } = await import('./extract.ts');
      await run(options, (session) => watchExtraction(session, id, options));
    });
  withConnection(groupOf('secrets').command('set <name>'))
    .description('create or replace a secret; its value is the first line of standard input')
    .option('--from <file>', 'read it from this file instead')
    .action(async (name: string, options: ClientOptions & { from?: string }) => {
      const { set } = await import('./secrets.ts');
      await run(options, (session) => set(session, name, options));
    });
  withConnection(groupOf('events').command('watch'))
    .description('print events as they happen')
    .option('--type <event>', 'only events of this name')
    .option('--limit <number>', 'exit after this many events', readCount)
    .action(async (options: ClientOptions & EventWatchOptions) => {
      const { watch } = await import('./events.ts');
      await run(options, (session) => watch(session, options));
    });
}

function addLedgerCommands(program: Command, run: Run): void {
  const ledger = program.command('ledger').description('export and verify the signed ledger of an app');
  withConnection(ledger.command('head'))
    .description('print the signed head of the ledger for later comparison')
    .option('--out <file>', 'write it to a new file instead')
    .action(async (options: ClientOptions & { out?: string }) => {
      const { head } = await import('./ledger.ts');
      await run(options, (session) => head(session, options));
    });
  withConnection(ledger.command('verify'))
    .description('verify that the audit log and the journals are unchanged; exits 1 if not')
    .option('--head <file...>', 'compare with these exported heads')
    .action(async (options: ClientOptions & { head?: string[] }) => {
      const { verify } = await import('./ledger.ts');
      await run(options, (session) => verify(session, options));
    });
}

/** Commands for developing a program that receives events. */
function addEventCommands(program: Command, run: Run): void {
  withConnection(program.command('listen'))
    .description('send events to a program on this machine as a webhook would, signed, until Ctrl-C')
    .requiredOption('--forward <url>', 'where the program receives them')
    .option('--events <names>', 'only these events, separated by commas (default: all)')
    .option('--replay <number>', 'send the last events first, this many at most', readNumber)
    .option('--secret-file <file>', 'sign with the secret in this file, which is created if it does not exist')
    .option('--limit <number>', 'exit after this many deliveries', readCount)
    .addHelpText(
      'after',
      formatExamples([
        'quarry listen --forward http://127.0.0.1:3000/hooks',
        'quarry listen --forward http://127.0.0.1:3000/hooks --events file.created,file.updated --replay 10',
      ]),
    )
    .action(async (options: ClientOptions & ListenOptions) => {
      const { listen } = await import('./listen.ts');
      await run(options, (session) => listen(session, options));
    });
  withConnection(program.command('trigger <event>'))
    .description('emit a sample of an event: its ids name nothing, and its data has "test": true')
    .option('--data <json>', 'members of its data: a JSON object, @file, or - for standard input')
    .addHelpText(
      'after',
      `${formatExamples([
        'quarry trigger file.created',
        `quarry trigger extraction.failed --data '{"failure_reason": "needs_browser"}'`,
      ])}\nActive automations and webhooks receive it, too: try it in a sandbox.\n`,
    )
    .action(async (event: string, options: ClientOptions & { data?: string }) => {
      const { trigger } = await import('./trigger.ts');
      await run(options, (session) => trigger(session, event, options));
    });
}

function addFileCommands(program: Command, run: Run): void {
  withConnection(program.command('upload <files...>'))
    .description('upload files')
    .option('--name <name>', 'filename on the server (for one file; required for -)')
    .option('--type <type>', 'media type; default: from the name')
    .option('--team <team>', 'team that owns it')
    .option('--user <user>', 'user that owns it, by id, e-mail or name')
    .option('--agent <agent>', 'agent that it belongs to')
    .option('--org <org>', 'organisation that it belongs to')
    .option('--share', 'create a permanent public URL (images only)')
    .addHelpText(
      'after',
      formatExamples(['quarry upload report.pdf photo.jpg', 'tar c notes | quarry upload - --name notes.tar']),
    )
    .action(async (paths: string[], options: ClientOptions & UploadOptions) => {
      const { upload } = await import('./upload.ts');
      await run(options, async (session) => upload(session, paths, await findOwners(session.client, options)));
    });
  withConnection(program.command('extract <source>'))
    .description('extract a file, a page or a site as Markdown to standard output')
    .option('--site', 'follow links to pages on the same host')
    .option('--max-pages <number>', 'maximum number of pages of a site (default 100)', readCount)
    .option('--include <pattern...>', 'only pages whose path begins with this; * matches anything')
    .option('--exclude <pattern...>', 'no pages whose path begins with this')
    .option('--out <directory>', 'write one .md file for each page to this directory instead')
    .option('--schema <file>', 'print data that validates against this JSON Schema instead')
    .option('--instructions <text>', 'instructions for taking the data; requires --schema')
    .option('--keep', 'keep a local file and its Markdown on the server; --json keeps them too')
    .option('--agent <agent>', 'agent that owns the job and its outputs')
    .option('--org <org>', 'organisation that owns them')
    .option('--name <name>', 'filename of standard input (-)')
    .option('--type <type>', 'media type of the file; default: from the name')
    .addHelpText(
      'after',
      `${formatExamples([
        'quarry extract report.pdf > report.md',
        'quarry extract https://example.com/article',
        'quarry extract https://example.com/docs/ --site --max-pages 50 --include /docs/ --out docs',
        'quarry extract invoice.pdf --schema invoice.schema.json --instructions "Prices are in kroner."',
      ])}\nPages of a URL stay on the server as files. A local file and its Markdown stay with --keep, and with --json, which names them.\n`,
    )
    .action(async (source: string, options: ClientOptions & ExtractOptions) => {
      const { extract } = await import('./extract.ts');
      await run(options, async (session) => extract(session, source, await findOwners(session.client, options)));
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
      formatExamples([
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
  withConnection(program.command('search <words...>').usage('[options] [source|agent] <query>'))
    .description('search everything you can see, or one source or agent, by id, lookup key or name')
    .option('--limit <number>', 'maximum number of passages (default 10)', readCount)
    .option('--mode <mode>', 'hybrid (default), vector or fulltext')
    .option('--min-similarity <number>', 'minimum cosine similarity of vector hits, 0 to 1', readShare)
    .option('--filter <json>', 'conditions on the metadata of documents')
    .addHelpText(
      'after',
      formatExamples([
        'quarry search "how do refunds work"',
        'quarry search cso_… how do refunds work',
        'quarry search helper refunds --json',
      ]),
    )
    .action(async (words: string[], options: ClientOptions & SearchOptions) => {
      const { search } = await import('./search.ts');
      await run(options, (session) => search(session, words, options));
    });
  withConnection(program.command('eval <target>'))
    .description('measure the search quality of a source or agent with your own questions, for each setting')
    .requiredOption('--queries <file>', 'a line of JSON for each question: {"query": …, "relevant": {"cdo_…": 2}}')
    .option(
      '--setting <json>',
      'members of a search to compare with the first; repeatable; default: each mode',
      collect,
    )
    .addHelpText(
      'after',
      formatExamples([
        'quarry eval cso_… --queries questions.jsonl',
        `quarry eval cso_… --queries questions.jsonl --setting '{"mode":"fulltext"}' --setting '{"mode":"hybrid"}'`,
      ]),
    )
    .action(async (target: string, options: ClientOptions & EvalOptions) => {
      const { evaluate } = await import('./eval.ts');
      await run(options, (session) => evaluate(session, target, options));
    });
}

function addTokenCommands(program: Command, run: Run): void {
  const token = program.command('token').description("create users' tokens; create, list and revoke API keys");
  withConnection(token.command('user <user>'))
    .description('create an access token for a user (id or e-mail) and print it')
    .addHelpText('after', formatExamples(['QUARRY_TOKEN=$(quarry token user ada@example.com) quarry kv list']))
    .action(async (named: string, options: ClientOptions) => {
      const { user } = await import('./token.ts');
      await run(options, (session) => user(session, named));
    });
  withConnection(token.command('key'))
    .description('create an API key and print it; it is not shown again')
    .option('--publishable', 'create a key that only allows sign-in and is safe to publish; default: a secret key')
    .option('--name <name>', 'name of the key')
    .option('--expires-in-days <days>', 'days until it stops working (default: never)', readCount)
    .option(
      '--scope <scope>',
      'what a secret key may do: read, an area (files, extractions, knowledge, automations, kv, webhooks, people, app), or an area such as kv:read; repeatable',
      collect,
    )
    .option('--in-sandbox <sandbox>', 'create a key that works only in this sandbox, by id or name')
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
    .description('revoke an API key immediately, by id or name')
    .action(async (named: string, options: ClientOptions) => {
      const { revoke } = await import('./token.ts');
      await run(options, (session) => revoke(session, named));
    });
}

/** The values of an option that may be given several times. */
function collect(value: string, before: string[] = []): string[] {
  return [...before, value];
}
