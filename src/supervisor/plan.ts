import { availableParallelism } from 'node:os';
import { type Config, runsJobs } from '../config/config.ts';

/** How many processes `quarry serve` starts; one of role `all` needs no supervisor. */
export type Plan = { all: number; http: number; worker: number };

/** Up to this many cores, one process with its PostgreSQL and parsers keeps the machine busy. */
const coresOfOneProcess = 2;
const httpPerWorker = 4;

/** Decides which processes these settings start on this machine. If a role is set but no number, one process of it. */
export function planProcesses(
  config: Pick<Config, 'processes' | 'role' | 'jobWorkers'>,
  cores = availableParallelism(),
): Plan {
  const { processes, role } = config;
  const automatic = role === 'all' && cores > coresOfOneProcess ? cores : 1;
  const count = processes === 'auto' ? automatic : processes;
  const none = { all: 0, http: 0, worker: 0 };
  if (role !== 'all') return { ...none, [role]: count };
  if (count === 1) return { ...none, all: 1 };
  return { ...none, http: count, worker: runsJobs(config) ? Math.ceil(count / httpPerWorker) : 0 };
}

export function isSupervised({ all, http, worker }: Plan): boolean {
  return all + http + worker > 1;
}

export function describePlan(plan: Plan): string {
  const parts = [
    ...(plan.all > 0 ? ['one process for requests and background jobs'] : []),
    ...(plan.http > 0 ? [`${plan.http} for requests`] : []),
    ...(plan.worker > 0 ? [`${plan.worker} for background jobs`] : []),
  ];
  return parts.join(', ');
}
