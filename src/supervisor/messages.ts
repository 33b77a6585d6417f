import type { Config } from '../config/config.ts';
import type { DatabaseTarget } from '../db/address.ts';
import type { Snapshot } from './fleet-metrics.ts';

/** The work that a supervisor assigns to a process. */
export type Assignment = {
  config: Config;
  /** The embedded PostgreSQL of the supervisor. */
  database: DatabaseTarget | undefined;
  /** Where the other processes serve requests, for a process that does not listen. */
  listeningUrl: string | undefined;
};

export type Started = {
  url: string;
  baseUrl: string;
  credentials: string | undefined;
  signInCode: string | undefined;
};

export type FromSupervisor =
  | { type: 'start'; assignment: Assignment }
  | { type: 'stop' }
  | { type: 'measure' }
  | { type: 'look' }
  | { type: 'metrics'; text: string | undefined };

export type FromChild =
  | { type: 'started'; started: Started }
  | { type: 'measured'; snapshot: Snapshot }
  | { type: 'alive' }
  | { type: 'read-metrics' };
