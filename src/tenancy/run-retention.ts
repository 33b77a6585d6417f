import type { Static } from 'typebox';
import { invalidField } from '../lib/errors.ts';
import { Type } from '../lib/type.ts';

const daysMax = 36_500;
const runsMax = 100_000;
const days = (description: string) => Type.Optional(Type.Integer({ minimum: 1, maximum: daysMax, description }));
const runs = (description: string) => Type.Optional(Type.Integer({ minimum: 1, maximum: runsMax, description }));

const members = {
  days: days('Days after their end for which completed and cancelled runs are kept. Default: no limit.'),
  runs: runs('How many completed and cancelled runs of each automation are kept, the newest. Default: no limit.'),
  failed_days: days('Days for which failed runs are kept. Default: `days`.'),
  failed_runs: runs('How many failed runs of each automation are kept, the newest. Default: `runs`.'),
  files: Type.Optional(
    Type.Boolean({
      description:
        'Whether the files that only deleted runs made are deleted with them, unless something else refers to them. Default: false.',
    }),
  ),
};

/** How long the runs of an automation are kept after their end. Without members, for ever. */
export const runRetentionSchema = Type.Object(members, {
  additionalProperties: false,
  description:
    'How long runs are kept after their end, at least a day. A run that exceeds one of the limits is deleted with its journal. Without members, runs are kept for ever.',
});
export type RunRetention = Static<typeof runRetentionSchema>;

/** Throws 422 if failed runs would be kept for a shorter time than others. */
export function checkRetention(field: string, retention: RunRetention | null | undefined): void {
  if (!retention) return;
  for (const name of ['days', 'runs'] as const) {
    const [others, failed] = [retention[name], retention[`failed_${name}`]];
    if (others !== undefined && failed !== undefined && failed < others)
      throw invalidField(`${field}.failed_${name}`, `must be at least ${field}.${name}`);
  }
}
