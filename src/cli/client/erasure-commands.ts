import type { Command } from 'commander';
import { formatExamples, type Run, withConnection } from './command-parts.ts';
import type { EraseOptions } from './erasures.ts';
import type { ClientOptions } from './session.ts';

/** Adds the commands that erase, and that export what is stored about a user. */
export function addErasureCommands(program: Command, run: Run): void {
  withConnection(program.command('erase'))
    .description('erase a user, a document or a source, wait, and print the signed certificate')
    .option('--user <user>', 'the user, by id, e-mail address or name')
    .option('--document <document>', 'the document, by id or title')
    .option('--source <source>', 'the source, by id, lookup key or name')
    .option('--files', 'also erase the files that the documents were read from')
    .option('--out <file>', 'write the certificate to this new file instead')
    .option('--yes', 'do not ask')
    .addHelpText('after', formatExamples(['quarry erase --user ada@example.com --out ada.certificate.json']))
    .action(async (options: ClientOptions & EraseOptions) => {
      const { erase } = await import('./erasures.ts');
      await run(options, (session) => erase(session, options));
    });
  const users = program.commands.find((each) => each.name() === 'users') ?? program.command('users');
  withConnection(users.command('export <user>'))
    .description('write everything that is stored about a user to a new ZIP file')
    .option('--out <path>', 'write it to this new file instead; - is standard output')
    .action(async (user: string, options: ClientOptions & { out?: string }) => {
      const { exportUser } = await import('./erasures.ts');
      await run(options, (session) => exportUser(session, user, options));
    });
}
