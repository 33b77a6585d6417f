import { Argument, Command, CommanderError, Option } from 'commander';
import { redact } from '../lib/log.ts';
import { version } from '../lib/version.ts';
import { readCount } from './arguments.ts';
import type { AutomationsOptions } from './client/automations.ts';
import { addPeopleCommands } from './client/people.ts';
import type { AddOptions } from './operate/add.ts';
import type { RestoreOptions, TakeOptions } from './operate/backup.ts';
import type { BundleOptions } from './operate/bundle.ts';
import type { VerifyOptions } from './operate/verify.ts';

/** Parses the arguments and runs their command. Returns the exit code. */
export async function runProgram(args: string[]): Promise<number> {
  const { program, exitCode } = buildProgram();
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode();
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
}

/** Defines every command with its options. */
export function buildProgram(): { program: Command; exitCode: () => number } {
  const program = new Command('quarry')
    .description('Self-hosted backend for AI agents. Settings come from environment variables: see `quarry config`.')
    .version(version, '--version', 'print the version')
    .configureOutput({ writeErr: (text) => process.stderr.write(redact(text)) })
    .showHelpAfterError('`quarry --help` lists the commands, `quarry <command> --help` their options.')
    .commandsGroup('Run a server:')
    .exitOverride();
  let code = 0;
  const end = (ended: number) => {
    code = ended;
  };
  addServerCommands(program, end);
  addAddOnCommands(program, end);
  addVerificationCommands(program, end);
  addJobCommands(program, end);
  addCellCommands(program, end);
  addBackupCommands(program, end);
  addAutomationCommands(program, end);
  addPeopleCommands(program, end);
  addCompletion(program);
  return { program, exitCode: () => code };
}

type End = (code: number) => void;
type Options = Record<string, string | boolean | undefined>;

/** Starting, checking and describing a server. */
function addServerCommands(program: Command, end: End): void {
  program
    .command('serve')
    .description('run the server')
    .showHelpAfterError('Settings are environment variables: `PORT=9000 quarry serve`. `quarry config` lists them.')
    .addOption(
      new Option('--only <role>', 'only serve requests or only run background jobs').choices(['http', 'worker']),
    )
    .action(async (options: Options) => end(await (await import('./operate/serve.ts')).run(options)));
  program
    .command('health')
    .description('check whether the configured server is ready; exits 1 if not')
    .addOption(new Option('--only <role>', 'the role of the process to check').choices(['http', 'worker']))
    .action(async (options: Options) => end(await (await import('./operate/health.ts')).run(options)));
  program
    .command('stop')
    .description('stop the server on this data directory, and a PostgreSQL that a killed server left running')
    .action(async () => end(await (await import('./operate/stop.ts')).run()));
  program
    .command('migrate')
    .description('apply the migrations of this release and exit')
    .action(async () => end(await (await import('./operate/migrate.ts')).run()));
  program
    .command('partition')
    .description('split the largest tables into partitions by app, while no server runs')
    .requiredOption('--count <number>', 'partitions of each table; it cannot be changed later')
    .action(async (options: Options) => end(await (await import('./operate/partition.ts')).run(options)));
  program
    .command('credentials')
    .description('create new credentials for the first app and print them')
    .option('--json', 'print JSON, as in credentials.json')
    .action(async (options: Options) => end(await (await import('./operate/credentials.ts')).run(options)));
  program
    .command('config')
    .description('print the effective settings, secrets redacted')
    .option('--json', 'print JSON')
    .action(async (options: Options) => end(await (await import('./operate/config.ts')).run(options)));
  program
    .command('openapi')
    .description('print the OpenAPI document')
    .option('--out <file>', 'write it to a file instead')
    .action(async (options: Options) => end(await (await import('./operate/openapi.ts')).run(options)));
  program
    .command('doctor')
    .description('check database, blobs, parsers, clock and disk, and suggest fixes')
    .action(async () => end(await (await import('./operate/doctor.ts')).run()));
}

/** Add-ons of the installation. */
function addAddOnCommands(program: Command, end: End): void {
  program
    .command('add')
    .argument('[name...]', 'ocr, renderer, s3, tracing; without a name, lists them')
    .description('install the packages of features that not every server uses, in the versions of this release')
    .option('--from <file>', 'from a file instead of the registry of npm')
    .option('--save <file>', 'write such a file instead of installing')
    .option('--program', 'beside the program instead of in the data directory, for images')
    .action(async (names: string[], options: AddOptions) => {
      end(await (await import('./operate/add.ts')).add(names, options));
    });
  program
    .command('remove <name...>')
    .description('delete add-ons from the data directory')
    .action(async (names: string[]) => end((await import('./operate/add.ts')).remove(names)));
  program
    .command('bundle')
    .description('write one archive with everything, for a machine without a network')
    .option('--platform <name>', 'linux-x64 or linux-arm64', `linux-${process.arch}`)
    .option('--add-ons <names>', 'separated by commas; "" for none (default: all)')
    .option('--out <file>', 'where to write it (default: quarry-VERSION-PLATFORM.tar.gz)')
    .action(async (options: BundleOptions) => end(await (await import('./operate/bundle.ts')).bundle(options)));
}

/** Ledgers and files. */
function addVerificationCommands(program: Command, end: End): void {
  program
    .command('fsck')
    .description('compare files with their contents; exits 1 if a problem was not repaired')
    .option('--repair', 'delete files without contents, and contents that no file refers to')
    .action(async (options: Options) => end(await (await import('./operate/fsck.ts')).run(options)));
  program
    .command('heads')
    .description('print the signed heads of all ledgers for later comparison')
    .option('--out <file>', 'write them to a new file instead')
    .action(async (options: { out?: string }) => {
      end(await (await import('./operate/verify.ts')).heads(options));
    });
  program
    .command('verify')
    .description('verify that audit logs and journals are unchanged; exits 1 if not')
    .option('--head <file...>', 'compare with these exported heads')
    .option('--backup <directory>', 'verify this backup instead of the database; s3://… names its newest one')
    .option('--trust <key...>', 'accept the signatures of these public keys')
    .option('--app <app>', 'only this app, by id')
    .option('--citations <file...>', 'verify these statements about quotes instead of the database')
    .option('--erasures <file...>', 'verify these certificates of erasures instead of the database')
    .option('--json', 'print JSON, one value per line')
    .action(async (options: VerifyOptions) => {
      end(await (await import('./operate/verify.ts')).verify(options));
    });
}

/** Quotas of apps, old runs and background jobs. */
function addJobCommands(program: Command, end: End): void {
  program
    .command('prune')
    .description('delete the runs that their retention no longer keeps, as servers do every hour')
    .option('--dry-run', 'only show what would be deleted')
    .option('--app <app>', 'only this app, by id')
    .action(async (options: { dryRun?: boolean; app?: string }) => {
      end(await (await import('./operate/prune.ts')).run(options));
    });
  program
    .command('quota <app>')
    .description('show the usage of an app and set its limits: a number, "none" or "default"')
    .option('--file-bytes <limit>', 'bytes of files and of learned search models')
    .option('--documents <limit>', 'knowledge documents')
    .option('--pages <limit>', 'pages extracted or pulled per day')
    .option('--tokens <limit>', 'tokens of the language model per day')
    .option('--sandboxes <limit>', 'sandboxes')
    .option('--json', 'print JSON')
    .action(async (app: string, options: Record<string, string | boolean | undefined>) => {
      end(await (await import('./operate/quota.ts')).run(app, options));
    });
  const jobs = program
    .command('jobs')
    .description('show the background jobs that are set aside, and why')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }) => {
      end(await (await import('./operate/jobs.ts')).list(options));
    });
  jobs
    .command('retry <job>')
    .description('retry a job that is set aside')
    .action(async (job: string) => {
      end(await (await import('./operate/jobs.ts')).retry(job));
    });
}

/** Several databases. */
function addCellCommands(program: Command, end: End): void {
  const cells = program.command('cells').description('show and change the databases that apps are in (QUARRY_CELLS)');
  cells
    .command('list')
    .description('show every cell; exits 1 if servers cannot use one')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }) => {
      end(await (await import('./operate/cells.ts')).list(options));
    });
  cells
    .command('add <name>')
    .description('prepare the database of a cell of QUARRY_CELLS')
    .action(async (name: string) => {
      end(await (await import('./operate/cells.ts')).add(name));
    });
  cells
    .command('drain <name>')
    .description('keep new apps out of a cell')
    .option('--undo', 'let them in again')
    .action(async (name: string, options: { undo?: boolean }) => {
      end(await (await import('./operate/cells.ts')).drain(name, options));
    });
  cells
    .command('move <app>')
    .description('move an app to another cell while it works, or continue an interrupted move')
    .option('--to <cell>', 'the other cell')
    .action(async (app: string, options: { to?: string }) => {
      end(await (await import('./operate/move.ts')).move(app, options));
    });
  cells
    .command('balance')
    .description('propose moves that even out the cells')
    .option('--dry-run', 'only show them; required')
    .option('--json', 'print JSON')
    .action(async (options: { dryRun?: boolean; json?: boolean }) => {
      end(await (await import('./operate/balance.ts')).balance(options));
    });
  cells
    .command('reconcile <name>')
    .description('after a cell, or the "directory", was restored by other means than quarry restore')
    .action(async (name: string) => {
      end(await (await import('./operate/reconcile.ts')).reconcile(name));
    });
  cells
    .command('moves')
    .description('show the moves that have not ended, and the latest others')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }) => {
      end(await (await import('./operate/move.ts')).list(options));
    });
  cells
    .command('abort <app>')
    .description('end the move of an app before its switch; the app stays where it is')
    .action(async (app: string) => {
      end(await (await import('./operate/move.ts')).abort(app));
    });
}

function addBackupCommands(program: Command, end: End): void {
  const backup = program
    .command('backup')
    .argument('[directory]', 'must not exist yet')
    .description('write a consistent backup of rows and files while servers keep running')
    .option('--to <url>', 'a bucket instead: s3://bucket/prefix, encrypted with QUARRY_BACKUP_KEY')
    .option('--keep <number>', 'remove all but the newest backups of the bucket', readCount)
    .option('--include-secret', 'include the generated root secret of the data directory')
    .option(
      '--cell <name>',
      'only this cell, or "directory"; default with QUARRY_CELLS: each into a directory of its own',
    )
    .action(async (directory: string | undefined, options: TakeOptions) => {
      end(await (await import('./operate/backup.ts')).take(directory, options));
    });
  backup
    .command('verify <directory>')
    .description('verify that a backup is complete and undamaged; s3://… names its newest one')
    .action(async (directory: string) => {
      end(await (await import('./operate/backup.ts')).verify(directory));
    });
  backup
    .command('list <url>')
    .description('list the backups of a bucket')
    .action(async (url: string) => {
      end(await (await import('./operate/backup.ts')).list(url));
    });
  program
    .command('restore <directory>')
    .description('restore a backup into an empty database and blob store; s3://… names its newest one')
    .option('--reuse-blobs', 'use contents that are already in the blob store, after verifying them')
    .option('--cell <name>', 'the cell of the backup, with QUARRY_CELLS')
    .action(async (directory: string, options: RestoreOptions) => {
      end(await (await import('./operate/backup.ts')).restore(directory, options));
    });
}

function addAutomationCommands(program: Command, end: End): void {
  const automations = program.command('automations').description('validate, apply and run automations from files');
  automations
    .command('validate <file>')
    .description('validate a YAML or JSON file without a server')
    .action(async (file: string) => {
      end((await import('./client/automations.ts')).validate(file));
    });
  for (const verb of ['apply', 'run'] as const) {
    const command = automations
      .command(`${verb} <file>`)
      .description(verb === 'apply' ? 'create or update the automation' : 'apply it, run it once, print its journal')
      .option('--url <url>', 'server; default: from the data directory')
      .option('--key <key>', 'secret key; default: from the data directory')
      .action(async (file: string, options: AutomationsOptions) => {
        end(await (await import('./client/automations.ts'))[verb](file, options));
      });
    if (verb === 'apply') command.option('--draft', 'do not activate it');
    else command.option('--payload <json>', 'payload of the run, as JSON');
  }
}

function addCompletion(program: Command): void {
  program.commandsGroup('Your shell:');
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'bash, zsh or fish').choices(['bash', 'zsh', 'fish']))
    .description('print a completion script for a shell')
    .addHelpText('after', '\nExamples:\n  $ source <(quarry completion bash)\n  $ quarry completion fish | source\n')
    .action(async (shell: 'bash' | 'zsh' | 'fish') => {
      const { completionScript } = await import('./completion.ts');
      process.stdout.write(completionScript(program, shell));
    });
}
