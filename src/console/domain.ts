import type { Domain } from '../domain.ts';
import { type ConsoleDeps, type ConsoleService, createConsoleService } from './service.ts';
import { consoleSweepJob, createConsoleSweepTask } from './sweep.ts';

export function createConsole(deps: ConsoleDeps): Domain<ConsoleService> {
  return {
    service: createConsoleService(deps),
    tasks: { [consoleSweepJob.task]: createConsoleSweepTask(deps) },
    recurring: [consoleSweepJob],
  };
}
