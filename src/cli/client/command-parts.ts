import type { Command } from 'commander';
import type { ClientOptions, Session } from './session.ts';

/** Runs the work of a command against the server that its options name. */
export type Run = (options: ClientOptions, work: (session: Session) => Promise<number>) => Promise<void>;

/** Adds the options that name a server and a credential. */
export function withConnection(command: Command): Command {
  return command
    .option('--url <url>', 'server (QUARRY_API_URL; default: from `quarry login`, then the data directory)')
    .option('--key <key>', 'API key (QUARRY_API_KEY; default: as for --url)')
    .option('--token <token>', 'bearer token of a user or developer (QUARRY_TOKEN)')
    .option('--app <app>', 'app that a developer token acts in, by id or name (QUARRY_APP)')
    .option('--sandbox <sandbox>', 'sandbox that a developer token acts in, by id or name (QUARRY_SANDBOX)')
    .option('--data-dir <directory>', 'directory whose credentials.json names server and key; use one that you trust')
    .option('--json', 'print JSON, one value per line')
    .configureHelp({ showGlobalOptions: false });
}

export function formatExamples(lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}\n`;
}
