import type { Command } from 'commander';
import { readCount, readNumber } from '../arguments.ts';
import { type Action, actions, groupAbout } from './action-kinds.ts';
import type { ActionValues } from './actions.ts';
import { formatExamples, type Run, withConnection } from './command-parts.ts';
import type { ClientOptions } from './session.ts';

/** Adds a command for each row of `actions`, below the command of its group. */
export function addActionCommands(program: Command, run: Run): void {
  for (const [group, list] of Object.entries(actions)) {
    const present = program.commands.find((each) => each.name() === group);
    const parent = present ?? program.command(group).description(groupAbout[group] ?? group);
    for (const action of list) addAction(parent, action, run);
  }
}

function addAction(parent: Command, action: Action, run: Run): void {
  const command = withConnection(parent.command(action.usage)).description(action.about);
  for (const { flags, about, reads } of action.options ?? []) {
    if (reads === 'count') command.option(flags, about, readNumber);
    else command.option(flags, about);
  }
  if (action.paged)
    command
      .option('--page <number>', 'page number, from 1', readCount)
      .option('--limit <number>', 'entries per page (default 25, at most 100)', readCount);
  if (action.asks !== undefined) command.option('--yes', 'do not ask');
  if (action.example !== undefined) command.addHelpText('after', formatExamples([action.example]));
  const names = [...action.usage.matchAll(/<(\w+)>/g)].map(([, name = '']) => name);
  command.action(async (...given: unknown[]) => {
    const options = given[names.length] as ClientOptions & ActionValues & { yes?: boolean };
    const words = Object.fromEntries(names.map((name, at) => [name, String(given[at])]));
    const values: ActionValues = { page: options.page, limit: options.limit };
    for (const { flags, member } of action.options ?? []) values[member] = options[optionName(flags)];
    const { runAction } = await import('./actions.ts');
    const { confirm } = await import('./prompt.ts');
    await run(options, async (session) => {
      if (action.asks !== undefined) await confirm(action.asks, options.yes);
      return runAction(session, action, words, values);
    });
  });
}

/** The name that commander gives an option: `expiresIn` for `--expires-in <seconds>`. */
function optionName(flags: string): string {
  return flags
    .slice(2)
    .split(' ', 1)
    .join()
    .replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
