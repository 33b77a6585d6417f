import { Command, CommanderError, Option } from 'commander';
import packageFile from '../../package.json' with { type: 'json' };
import { redact } from '../log.ts';
import type { AutomationsOptions } from './automations.ts';
import { RefusedError, UsageError } from './client.ts';
import { explain } from './explain.ts';
import { addPeopleCommands } from './people.ts';

/** Runs one `quarry` command. Answers the exit code: 0, 1 when it failed, 2 when it was called wrongly. */
export async function runCommand(args: string[]): Promise<number> {
  const { program, exitCode } = buildProgram();
  // A reader that went away (`quarry openapi | head`) wants no more words; a backup or a server goes on without them.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.stderr.write(`Standard output cannot be written (${error.code}).\n`);
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode();
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const known = error instanceof UsageError || error instanceof RefusedError;
    process.stderr.write(`${known ? redact(error.message) : explain(error)}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

/** Every command with its options, and the exit code of the one that ran. */
export function buildProgram(): { program: Command; exitCode: () => number } {
  const program = new Command('quarry')
    .description('Self-hosted backend for AI agents. Settings come from environment variables: see `quarry config`.')
    .version(packageFile.version, '--version', 'print the version')
    .configureOutput({ writeErr: (text) => process.stderr.write(redact(text)) })
    .showHelpAfterError('`quarry --help` lists the commands, `quarry <command> --help` the options of one.')
    .commandsGroup('Run a server:')
    .exitOverride();
  let code = 0;
  const action =
    (load: () => Promise<{ run(options: Record<string, string | boolean | undefined>): Promise<number> }>) =>
    async (options: Record<string, string | boolean | undefined>) => {
      code = await (await load()).run(options);
    };
  program
    .command('serve')
    .description('run the server')
    .addOption(
      new Option('--only <role>', 'answer requests or run background jobs, not both').choices(['http', 'worker']),
    )
    .action(action(() => import('./serve.ts')));
  program
    .command('health')
    .description('ask the server of these settings whether it is ready; exits 1 when not')
    .addOption(new Option('--only <role>', 'the process that was started with it').choices(['http', 'worker']))
    .action(action(() => import('./health.ts')));
  program
    .command('migrate')
    .description('bring the database to this release and stop')
    .action(action(() => import('./migrate.ts')));
  program
    .command('credentials')
    .description('make new credentials for the first app and print them')
    .option('--json', 'print JSON, as in credentials.json')
    .action(action(() => import('./credentials.ts')));
  program
    .command('config')
    .description('print the effective settings, secrets redacted')
    .option('--json', 'print JSON')
    .action(action(() => import('./config.ts')));
  program
    .command('openapi')
    .description('print the OpenAPI document')
    .option('--out <file>', 'write it to a file instead')
    .action(action(() => import('./openapi.ts')));
  program
    .command('doctor')
    .description('check database, blobs, parsers, clock and disk, and say how to mend what is wrong')
    .action(action(() => import('./doctor.ts')));
  program
    .command('fsck')
    .description('compare files with their contents; exits 1 when something is wrong and stays so')
    .option('--repair', 'delete files whose contents are gone and contents that no file refers to')
    .action(action(() => import('./fsck.ts')));
  program
    .command('quota <app>')
    .description('show what an app uses, and set what it may have: a number, "none" or "default"')
    .option('--file-bytes <bound>', 'bytes of files')
    .option('--documents <bound>', 'documents of knowledge')
    .option('--pages <bound>', 'pages extracted or pulled in a day')
    .option('--sandboxes <bound>', 'sandboxes')
    .option('--json', 'print JSON')
    .action(async (app: string, options: Record<string, string | boolean | undefined>) => {
      code = await (await import('./quota.ts')).run(app, options);
    });
  const jobs = program
    .command('jobs')
    .description('show the background jobs that are set aside, and why')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }) => {
      code = await (await import('./jobs.ts')).list(options);
    });
  jobs
    .command('retry <job>')
    .description('have a job that is set aside tried again')
    .action(async (job: string) => {
      code = await (await import('./jobs.ts')).retry(job);
    });
  const backup = program
    .command('backup')
    .argument('<directory>', 'must not exist yet')
    .description('write a backup of one moment, rows and files, while servers go on')
    .option('--include-secret', 'put the generated root secret of the data directory into it')
    .action(async (directory: string, options: { includeSecret?: boolean }) => {
      code = await (await import('./backup.ts')).take(directory, options);
    });
  backup
    .command('verify <directory>')
    .description('read a whole backup and say whether it is as it was written')
    .action(async (directory: string) => {
      code = await (await import('./backup.ts')).verify(directory);
    });
  program
    .command('restore <directory>')
    .description('restore a backup into an empty database and blob store')
    .option('--reuse-blobs', 'the blob store may hold contents already; the right ones are used as they are')
    .action(async (directory: string, options: { reuseBlobs?: boolean }) => {
      code = await (await import('./backup.ts')).restore(directory, options);
    });
  const automations = program.command('automations').description('check, install and try automations from files');
  automations
    .command('validate <file>')
    .description('check a YAML or JSON file without a server')
    .action(async (file: string) => {
      code = (await import('./automations.ts')).validate(file);
    });
  for (const verb of ['apply', 'run'] as const) {
    const command = automations
      .command(`${verb} <file>`)
      .description(verb === 'apply' ? 'create or update the automation' : 'apply it, run it once, print its journal')
      .option('--url <url>', 'server; default: the one of the data directory')
      .option('--key <key>', 'secret key; default: the one of the data directory')
      .action(async (file: string, options: AutomationsOptions) => {
        code = await (await import('./automations.ts'))[verb](file, options);
      });
    if (verb === 'apply') command.option('--draft', 'do not activate it');
    else command.option('--payload <json>', 'payload of the run, as JSON');
  }
  addPeopleCommands(program, (ended) => {
    code = ended;
  });
  return { program, exitCode: () => code };
}
