import type { Command } from 'commander';
import { readCount } from '../arguments.ts';
import { formatExamples, type Run, withConnection } from './command-parts.ts';
import type { KvEntriesOptions, KvListOptions, KvOptions, KvPutOptions, KvWatchOptions } from './kv.ts';
import { findOwners } from './names.ts';
import type { ClientOptions } from './session.ts';

const userOption = 'owner of the entry, by id, e-mail or name; required with a secret key or developer token';

export function addKvCommands(program: Command, run: Run): void {
  const kv = program.command('kv').description("read and write users' key-value entries");
  addReads(kv, run);
  addWrites(kv, run);
}

function addReads(kv: Command, run: Run): void {
  withConnection(kv.command('get <key>'))
    .description('print the value, byte for byte')
    .option('--user <user>', userOption)
    .action(async (key: string, options: ClientOptions & KvOptions) => {
      const { get } = await import('./kv.ts');
      await run(options, async (session) => get(session, key, await findOwners(session.client, options)));
    });
  withConnection(kv.command('list'))
    .description('list entries, 100 per page')
    .option('--user <user>', 'only entries of this user')
    .option('--prefix <prefix>', 'only keys with this prefix')
    .option('--page <number>', 'page number, from 1', readCount)
    .action(async (options: ClientOptions & KvListOptions) => {
      const { list } = await import('./kv.ts');
      await run(options, async (session) => list(session, await findOwners(session.client, options)));
    });
  withConnection(kv.command('entries'))
    .description('list entries by key, with a cursor')
    .option('--user <user>', userOption)
    .option('--prefix <prefix>', 'only keys with this prefix')
    .option('--cursor <cursor>', 'continue after this cursor')
    .option('--limit <number>', 'number of entries', readCount)
    .action(async (options: ClientOptions & KvEntriesOptions) => {
      const { entries } = await import('./kv.ts');
      await run(options, async (session) => entries(session, await findOwners(session.client, options)));
    });
  withConnection(kv.command('watch [key]'))
    .description('print changes of one entry, or of all, as they happen')
    .option('--user <user>', userOption)
    .option('--prefix <prefix>', 'only keys with this prefix')
    .option('--limit <number>', 'exit after this many changes', readCount)
    .action(async (key: string | undefined, options: ClientOptions & KvWatchOptions) => {
      const { watch } = await import('./kv.ts');
      await run(options, async (session) => watch(session, key, await findOwners(session.client, options)));
    });
}

function addWrites(kv: Command, run: Run): void {
  withConnection(kv.command('put <key> [value]'))
    .description('create or overwrite an entry; without a value (or with -), read it from standard input')
    .option('--user <user>', userOption)
    .option('--ttl <seconds>', 'the entry expires after this many seconds', readCount)
    .addHelpText(
      'after',
      formatExamples(['quarry kv put theme dark --user usr_…', 'quarry kv put notes --user usr_… < notes.txt']),
    )
    .action(async (key: string, value: string | undefined, options: ClientOptions & KvPutOptions) => {
      const { put } = await import('./kv.ts');
      await run(options, async (session) => put(session, key, value, await findOwners(session.client, options)));
    });
  withConnection(kv.command('increment <key> [by]'))
    .description('add to a number (by default 1) and print the sum')
    .option('--user <user>', userOption)
    .addHelpText(
      'after',
      formatExamples(['quarry kv increment visits --user usr_…', 'quarry kv increment stock -- -3']),
    )
    .action(async (key: string, by: string | undefined, options: ClientOptions & KvOptions) => {
      const { increment } = await import('./kv.ts');
      await run(options, async (session) =>
        increment(session, key, Number(by ?? 1), await findOwners(session.client, options)),
      );
    });
  withConnection(kv.command('batch <file>'))
    .description('run up to 100 operations, all or none: a JSON array in a file, or - for standard input')
    .option('--user <user>', userOption)
    .addHelpText(
      'after',
      formatExamples([`echo '[{"op": "put", "key": "a", "value": "1"}]' | quarry kv batch - --user usr_…`]),
    )
    .action(async (path: string, options: ClientOptions & KvOptions) => {
      const { batch } = await import('./kv.ts');
      await run(options, async (session) => batch(session, path, await findOwners(session.client, options)));
    });
  withConnection(kv.command('delete <key>'))
    .description('delete an entry, after a question')
    .option('--user <user>', userOption)
    .option('--yes', 'do not ask')
    .action(async (key: string, options: ClientOptions & KvOptions & { yes?: boolean }) => {
      const { remove } = await import('./kv.ts');
      await run(options, async (session) =>
        remove(session, key, { ...(await findOwners(session.client, options)), yes: options.yes }),
      );
    });
}
