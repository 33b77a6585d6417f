import type { Command } from 'commander';
import { formatExamples, type Run, withConnection } from '../client/command-parts.ts';
import type { ClientOptions } from '../client/session.ts';
import type { ApplyOptions } from './apply.ts';

/** Adds the commands for developing an app and keeping it in files. */
export function addDevelopCommands(program: Command, run: Run): void {
  program.commandsGroup('Develop an app:');
  withConnection(program.command('apply <directory>'))
    .description('make sources, automations, webhooks, issuers and config entries what the files say')
    .option('--dry-run', 'only show the difference; exits 3 if there is one')
    .option('--prune', 'delete what apply created and the directory no longer has')
    .option('--yes', 'do not ask before deleting')
    .addHelpText(
      'after',
      formatExamples(['quarry apply app', 'quarry apply app --dry-run', 'quarry apply app --prune --yes']),
    )
    .action(async (directory: string, options: ClientOptions & ApplyOptions) => {
      const { apply } = await import('./apply.ts');
      await run(options, (session) => apply(session, directory, options));
    });
  withConnection(program.command('export <directory>'))
    .description('write an app as files that apply reads, without secrets')
    .addHelpText('after', formatExamples(['quarry export app']))
    .action(async (directory: string, options: ClientOptions) => {
      const { exportTo } = await import('./export.ts');
      await run(options, (session) => exportTo(session, directory));
    });
}
