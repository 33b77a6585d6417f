import type { Command } from 'commander';
import { formatExamples, type Run, withConnection } from './command-parts.ts';
import type { LoginOptions } from './login.ts';
import type { ClientOptions } from './session.ts';

export function addSignInCommands(program: Command, run: Run, setCode: (code: number) => void): void {
  program
    .command('login <url>')
    .description('store a server and a credential for later commands; prompts for what is missing')
    .option('--key <key>', 'a secret key')
    .option('--token <token>', "a developer token, or a user's token")
    .option('--app <app>', 'app that a developer token acts in, by id or name; default: its only one')
    .option('--sandbox <sandbox>', 'sandbox that a developer token acts in, by id or name')
    .option('--email <email>', 'sign in as a user; asks for the password')
    .option('--publishable-key <key>', 'publishable key (pk_…) of the app of the user')
    .addHelpText(
      'after',
      formatExamples([
        'quarry login https://quarry.example.com',
        'quarry login https://quarry.example.com --email ada@example.com --publishable-key pk_…',
        'quarry login http://127.0.0.1:8080 < key.txt',
      ]),
    )
    .action(async (url: string, options: LoginOptions) => {
      setCode(await (await import('./login.ts')).login(url, options));
    });
  program
    .command('logout')
    .description('delete the stored credential of `quarry login`')
    .action(async () => {
      setCode(await (await import('./login.ts')).logout());
    });
  withConnection(program.command('whoami'))
    .description('show the server and the credential that commands use')
    .action(async (options: ClientOptions) => {
      const { whoami } = await import('./login.ts');
      await run(options, whoami);
    });
}
