import type { Command } from 'commander';
import { readCount } from '../arguments.ts';
import { formatExamples, type Run, withConnection } from './command-parts.ts';
import { findOwners } from './names.ts';
import { type Resource, resources, type Verb } from './resource-kinds.ts';
import type { CreateOptions, ListOptions } from './resources.ts';
import type { ClientOptions } from './session.ts';
import type { UploadOptions } from './upload.ts';

const ownerWords = {
  user: 'user, by id, e-mail or name',
  org: 'organisation, by id, slug or name',
  team: 'team, by id or name',
  agent: 'agent, by id, lookup key or name',
  source: 'source, by id or name',
};

/** Adds the commands of every kind of resource in the table. */
export function addResourceCommands(program: Command, run: Run): void {
  for (const [kind, resource] of Object.entries(resources)) {
    const verbs = allVerbs.filter((verb) => !resource.without?.includes(verb));
    const present = program.commands.find((each) => each.name() === kind);
    const parent =
      present ?? program.command(kind).description(`${verbs.join(', ').replace(/, (\w+)$/, ' and $1')} ${kind}`);
    for (const verb of verbs) adders[verb](parent, kind, resource, run);
  }
}

type Add = (parent: Command, kind: string, resource: Resource, run: Run) => void;
const adders: Record<Verb, Add> = {
  list: addList,
  get: addGet,
  create: addCreate,
  update: addUpdate,
  delete: addDelete,
};
const allVerbs = Object.keys(adders) as Verb[];

function addGet(parent: Command, kind: string, resource: Resource, run: Run): void {
  withConnection(parent.command('get <name>'))
    .description(`show ${withArticle(kind)}`)
    .action(async (named: string, options: ClientOptions) => {
      const { get } = await import('./resources.ts');
      await run(options, (session) => get(session, resource, named));
    });
}

function addDelete(parent: Command, kind: string, resource: Resource, run: Run): void {
  withConnection(parent.command('delete <names...>'))
    .description(`delete ${kind}, after a question`)
    .option('--yes', 'do not ask')
    .action(async (names: string[], options: ClientOptions & { yes?: boolean }) => {
      const { remove } = await import('./resources.ts');
      await run(options, (session) => remove(session, resource, { kind, names, yes: options.yes }));
    });
}

function addList(parent: Command, kind: string, resource: Resource, run: Run): void {
  const command = withConnection(parent.command('list'))
    .description(`list ${kind}`)
    .option('--page <number>', 'page number, from 1', readCount)
    .option('--limit <number>', 'entries per page (default 25, at most 100)', readCount);
  if (resource.search !== undefined) command.option('--search <text>', `only ${kind} whose name contains this text`);
  for (const owner of resource.filters) command.option(`--${owner} <${owner}>`, `only of this ${ownerWords[owner]}`);
  command.action(async (options: ClientOptions & ListOptions) => {
    const { list } = await import('./resources.ts');
    await run(options, (session) => list(session, resource, options));
  });
}

function addCreate(parent: Command, kind: string, resource: Resource, run: Run): void {
  if (resource.create === undefined) return;
  const { member, about, example, second, owners } = resource.create;
  const examples = [example, ...(second === undefined ? [] : [second])];
  const command = withConnection(parent.command(`create <${member}>`))
    .description(
      kind === 'files'
        ? 'upload a file'
        : `create ${withArticle(kind)} and print its id${about === undefined ? '' : `; ${about}`}`,
    )
    .addHelpText('after', formatExamples(examples.map((each) => `quarry ${kind} create ${each}`)));
  for (const owner of owners) command.option(`--${owner} <${owner}>`, `of this ${ownerWords[owner]}`);
  if (kind === 'files') {
    command.action(async (path: string, options: ClientOptions & UploadOptions) => {
      const { upload } = await import('./upload.ts');
      await run(options, async (session) => upload(session, [path], await findOwners(session.client, options)));
    });
    return;
  }
  command
    .option('--set <member=value...>', 'another member of the request; the value is JSON or text')
    .option('--data <json>', 'more members: a JSON object, @file, or - for standard input')
    .action(async (argument: string, options: ClientOptions & CreateOptions) => {
      const { create } = await import('./resources.ts');
      await run(options, (session) => create(session, resource, argument, options));
    });
}

function addUpdate(parent: Command, kind: string, resource: Resource, run: Run): void {
  withConnection(parent.command('update <name>'))
    .description(`change ${withArticle(kind)}`)
    .option('--set <member=value...>', 'a member to change; the value is JSON or text')
    .option('--data <json>', 'members to change: a JSON object, @file, or - for standard input')
    .action(async (named: string, options: ClientOptions & CreateOptions) => {
      const { update } = await import('./resources.ts');
      await run(options, (session) => update(session, resource, named, options));
    });
}

/** One resource of a kind, for a sentence: `an app`, `a sandbox`. */
function withArticle(kind: string): string {
  const word = kind.replace(/(?<=x)es$|s$/, '');
  return `${/^(?!user)[aeiou]/.test(word) ? 'an' : 'a'} ${word}`;
}
