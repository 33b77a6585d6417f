import { type Command, Option } from 'commander';
import { formatExamples, type Run, withConnection } from '../client/command-parts.ts';
import type { ClientOptions } from '../client/session.ts';
import type { ApplyOptions } from './apply.ts';
import type { DevOptions } from './dev.ts';
import type { InitOptions } from './init.ts';

const languages: InitOptions['language'][] = ['typescript', 'python'];

/** Adds the commands for developing an app and keeping it in files. */
export function addDevelopCommands(program: Command, run: Run, end: (code: number) => void): void {
  program.commandsGroup('Develop an app:');
  program
    .command('dev [directory]')
    .description('run a server for developing: applies the files of the directory (default: app) at each change')
    .option('--prune', 'delete what was created here and the directory no longer has')
    .addHelpText('after', formatExamples(['quarry dev', 'PORT=9000 quarry dev shop --prune']))
    .action(async (directory: string | undefined, options: DevOptions) => {
      const { dev } = await import('./dev.ts');
      end(await dev(directory ?? 'app', options));
    });
  program
    .command('init [directory]')
    .description('write a starter: a source, an automation, a tool for an agent, and a test')
    .addOption(new Option('--language <language>', 'of the program').choices(languages).default('typescript'))
    .addHelpText('after', formatExamples(['quarry init shop', 'quarry init shop --language python']))
    .action(async (directory: string | undefined, options: InitOptions) => {
      const { init } = await import('./init.ts');
      end(init(directory ?? '.', options));
    });
  withConnection(program.command('console'))
    .description('print a link that signs you in to the web console, once')
    .action(async (options: ClientOptions) => {
      const { printSignInLink } = await import('./console.ts');
      await run(options, printSignInLink);
    });
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
