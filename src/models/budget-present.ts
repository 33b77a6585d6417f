import { production } from '../db/database.ts';
import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { BudgetRow } from '../llm/budget-store.ts';
import { formatSubject } from '../llm/budgets.ts';
import type { UsageDimension } from './budget-schema.ts';
import type { BudgetUseRow, UsageRow } from './budget-store.ts';

export function presentBudget(row: BudgetRow) {
  return {
    ...compact({
      id: formatId('modelBudget', row.id),
      app: formatId('app', row.appId),
      subject: row.subject,
      subject_id: formatSubject(row.subject, row.subjectId),
      period: row.period,
      tokens: row.tokens,
      cost: row.cost,
      soft_tokens: row.softTokens,
      soft_cost: row.softCost,
      created_at: iso(row.createdAt),
      updated_at: iso(row.updatedAt),
    }),
    sandbox: presentSandboxId(row.sandboxId),
  };
}

export function presentUse({ subject }: BudgetRow, row: BudgetUseRow, resetsAt: Date | undefined) {
  return {
    subject_id: formatSubject(subject, row.subjectId),
    tokens: row.tokens,
    cost: row.cost,
    resets_at: resetsAt === undefined ? null : iso(resetsAt),
  };
}

export function presentUsage(by: UsageDimension, row: UsageRow) {
  return {
    group: presentGroup(by, row.group),
    calls: row.calls,
    prompt_tokens: row.promptTokens,
    completion_tokens: row.completionTokens,
    cost: row.cost,
  };
}

function presentGroup(by: UsageDimension, group: string | null): string | null {
  if (group === null || by === 'model' || by === 'day') return group;
  return by === 'sandbox' && group === production ? null : formatSubject(by, group);
}

/** A table for spreadsheets. A field that one would read as a formula is quoted as text. */
export function usageCsv(by: UsageDimension, rows: readonly UsageRow[]): string {
  const lines = rows.map((row) => {
    const { group, ...counts } = presentUsage(by, row);
    return [csvField(group ?? ''), ...Object.values(counts).map(String)].join(',');
  });
  return [`${by},calls,prompt_tokens,completion_tokens,cost`, ...lines, ''].join('\r\n');
}

function csvField(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
