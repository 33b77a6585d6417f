import { type Command, Option } from 'commander';
import { readCount } from '../arguments.ts';
import { formatExamples, type Run, withConnection } from './command-parts.ts';
import type { InvokeOptions, RunListOptions } from './runs.ts';
import type { ClientOptions } from './session.ts';

export function addRunCommands(program: Command, run: Run): void {
  const runs = program.command('runs').description('list, start, follow, signal, cancel and retry runs of automations');
  withConnection(runs.command('watch <run>'))
    .description('print the journal of a run until it ends; exits 1 unless it completed')
    .action(async (id: string, options: ClientOptions) => {
      const { watch } = await import('./runs.ts');
      await run(options, (session) => watch(session, id));
    });
  withConnection(runs.command('output <run>'))
    .description('print what the language model writes for a run, as it writes it')
    .action(async (id: string, options: ClientOptions) => {
      const { output } = await import('./runs.ts');
      await run(options, (session) => output(session, id));
    });
  withConnection(runs.command('invoke <automation>'))
    .description('start a run of an automation (its id or lookup key) and watch it')
    .option('--payload <json>', 'payload: JSON, @file, or - for standard input')
    .option('--idempotency-key <key>', 'a repeated key does not start a second run')
    .option('--no-wait', 'print the id of the run and exit')
    .addHelpText('after', formatExamples([`quarry runs invoke greet --payload '{"name": "Ada"}'`]))
    .action(async (automation: string, options: ClientOptions & InvokeOptions) => {
      const { invoke } = await import('./runs.ts');
      await run(options, (session) => invoke(session, automation, options));
    });
  withConnection(runs.command('list'))
    .description('list runs, newest first')
    .addOption(
      new Option('--status <status>', 'only runs of this status').choices([
        ...['pending', 'running', 'waiting', 'completed', 'failed', 'cancelled'],
      ]),
    )
    .option('--automation <automation>', 'only runs of this automation, by id, lookup key or name')
    .option('--search <text>', 'part of the name or lookup key of the automation')
    .option('--since <time>', 'only runs created since this time, in ISO 8601')
    .option('--until <time>', 'only runs created before this time')
    .option('--limit <number>', 'number of runs (default 25, at most 100)', readCount)
    .option('--after <cursor>', 'continue after this cursor')
    .action(async (options: ClientOptions & RunListOptions) => {
      const { list } = await import('./runs.ts');
      await run(options, (session) => list(session, options));
    });
  withConnection(runs.command('cancel <runs...>'))
    .description('cancel runs')
    .action(async (ids: string[], options: ClientOptions) => {
      const { cancel } = await import('./runs.ts');
      await run(options, (session) => cancel(session, ids));
    });
  withConnection(runs.command('signal <run> <name>'))
    .description('send a signal to a run that waits for it')
    .option('--payload <json>', 'payload: JSON, @file, or - for standard input')
    .addHelpText('after', formatExamples([`quarry runs signal atr_… approved --payload '{"by": "Ada"}'`]))
    .action(async (id: string, name: string, options: ClientOptions & { payload?: string }) => {
      const { signal } = await import('./runs.ts');
      await run(options, (session) => signal(session, id, name, options));
    });
  withConnection(runs.command('retry <run>'))
    .description('start a run again with the same payload and watch it')
    .option('--no-wait', 'print the id of the new run and exit')
    .action(async (id: string, options: ClientOptions & { wait: boolean }) => {
      const { retry } = await import('./runs.ts');
      await run(options, (session) => retry(session, id, options));
    });
}
