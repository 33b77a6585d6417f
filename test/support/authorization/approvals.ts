import type { Fixtures } from './fixtures.ts';
import type { Expectation } from './matrix.ts';
import { asked, everybody, keysOnly, managed } from './tables.ts';

/** Who may change runs, and who may read and answer approvals. */
export function approvalExpectations(make: Fixtures['make']): Record<string, Expectation> {
  /** Automations belong to users, teams and orgs, not to agents. */
  const managedByPeople = managed.filter(({ whose }) => whose !== 'agent');
  return {
    'POST /api/v1/automation_runs/:automation_run/cancel': {
      table: managedByPeople,
      make: make.run,
      consumes: true,
    },
    'POST /api/v1/automation_runs/:automation_run/retry': { table: managedByPeople, make: make.endedRun },
    'POST /api/v1/automation_runs/:automation_run/signal': {
      table: managedByPeople,
      make: make.run,
      send: () => ({ body: { name: 'go' } }),
      admitted: 409,
    },
    'POST /api/v1/automation_work/claim': {
      table: keysOnly,
      send: () => ({ body: { automations: ['none'], code_version: '1', lease_seconds: 60 } }),
      admitted: 422,
    },
    'POST /api/v1/automation_runs/:automation_run/entries': {
      table: managedByPeople,
      make: make.run,
      send: () => ({ body: { claim: 'clm_0000000000000000000000', after_sequence: 0, entries: [] } }),
      admitted: 409,
    },
    'POST /api/v1/automation_runs/:automation_run/claimed_journal': {
      table: managedByPeople,
      make: make.run,
      send: () => ({ body: { claim: 'clm_0000000000000000000000', after_cursor: 'x' } }),
      admitted: 409,
    },
    'GET /api/v1/approvals': { table: everybody },
    'GET /api/v1/approvals/:approval': { table: asked, make: make.approval },
    'POST /api/v1/approvals/:approval/answer': {
      table: asked,
      make: make.approval,
      send: () => ({ body: { data: { ok: true } } }),
      consumes: true,
    },
    'POST /api/v1/approvals/:approval/links': {
      table: managedByPeople,
      make: make.approval,
      send: () => ({ body: { to: 'someone' } }),
      consumes: true,
    },
  };
}
