import type { Db } from '../../db/database.ts';
import { invalidField } from '../../lib/errors.ts';
import type { Fragment } from './store.ts';

const conditionsMax = 100;
const depthMax = 6;

type Scalar = string | number | boolean | null;
type Comparison = 'gt' | 'gte' | 'lt' | 'lte';

/**
 * Compiles a filter to SQL over `d.metadata`: `{key: value | {in, gt, gte, lt, lte, ne, exists}}`, all of which must
 * hold, with `and: [filter…]` and `or: [filter…]`. A list in the metadata matches if one of its items does. Throws 422.
 */
export function compileFilter(db: Db, filter: Record<string, unknown>): Fragment {
  const budget = { left: conditionsMax };
  return compileAll(db, filter, 'filter', 0, budget);
}

function compileAll(
  db: Db,
  filter: Record<string, unknown>,
  at: string,
  depth: number,
  budget: { left: number },
): Fragment {
  if (depth > depthMax) throw invalidField(at, `is nested deeper than ${depthMax} levels`);
  const parts = Object.entries(filter).map(([key, condition]) => {
    const place = `${at}.${key}`;
    budget.left -= 1;
    if (budget.left < 0) throw invalidField('filter', `has more than ${conditionsMax} conditions`);
    if (key === 'and' || key === 'or') return compileGroup(db, key, condition, place, depth, budget);
    return isRecord(condition)
      ? compileOperators(db, key, condition, place)
      : equals(db, key, scalar(condition, place));
  });
  return join(db, parts, 'and', true);
}

function compileGroup(
  db: Db,
  operator: 'and' | 'or',
  filters: unknown,
  at: string,
  depth: number,
  budget: { left: number },
): Fragment {
  if (!Array.isArray(filters) || !filters.every(isRecord)) throw invalidField(at, 'must be a list of filters');
  const parts = filters.map((filter, i) => compileAll(db, filter, `${at}.${i}`, depth + 1, budget));
  return join(db, parts, operator, operator === 'and');
}

function compileOperators(db: Db, key: string, operators: Record<string, unknown>, at: string): Fragment {
  const parts = Object.entries(operators).map(([operator, value]) => {
    const place = `${at}.${operator}`;
    switch (operator) {
      case 'in': {
        if (!Array.isArray(value)) throw invalidField(place, 'must be a list of values');
        if (value.length > conditionsMax) throw invalidField(place, `has more than ${conditionsMax} values`);
        const choices = value.map((item, i) => equals(db, key, scalar(item, `${place}.${i}`)));
        return join(db, choices, 'or', false);
      }
      case 'ne':
        return db`not coalesce(${equals(db, key, scalar(value, place))}, false)`;
      case 'gt':
      case 'gte':
      case 'lt':
      case 'lte':
        return compare(db, key, operator, value, place);
      case 'exists':
        if (typeof value !== 'boolean') throw invalidField(place, 'must be true or false');
        return value ? db`d.metadata ? ${key}` : db`not d.metadata ? ${key}`;
      default:
        throw invalidField(place, 'is not an operator: use in, gt, gte, lt, lte, ne or exists');
    }
  });
  if (parts.length === 0) throw invalidField(at, 'must have an operator');
  return join(db, parts, 'and', true);
}

/** SQL: the value itself, or an item of a list, is equal. */
function equals(db: Db, key: string, value: Scalar): Fragment {
  return db`coalesce(d.metadata -> ${key}::text @> ${JSON.stringify(value)}::text::jsonb, false)`;
}

/** Numbers compare with numbers and strings with strings (by code points); other types never match. */
function compare(db: Db, key: string, operator: Comparison, value: unknown, at: string): Fragment {
  const sign = { gt: db`>`, gte: db`>=`, lt: db`<`, lte: db`<=` }[operator];
  if (typeof value === 'number')
    return db`case when jsonb_typeof(d.metadata -> ${key}::text) = 'number'
      then (d.metadata -> ${key}::text)::numeric ${sign} ${String(value)}::text::numeric else false end`;
  if (typeof value === 'string')
    return db`case when jsonb_typeof(d.metadata -> ${key}::text) = 'string'
      then (d.metadata ->> ${key}::text) collate "C" ${sign} ${value}::text collate "C" else false end`;
  throw invalidField(at, 'must be a number or a string');
}

function scalar(value: unknown, at: string): Scalar {
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) return value as Scalar;
  throw invalidField(at, 'must be a string, a number, true, false or null');
}

function join(db: Db, parts: Fragment[], operator: 'and' | 'or', whenEmpty: boolean): Fragment {
  const [first, ...others] = parts;
  if (!first) return whenEmpty ? db`true` : db`false`;
  const all = others.reduce(
    (left, right) => (operator === 'and' ? db`${left} and ${right}` : db`${left} or ${right}`),
    first,
  );
  return db`(${all})`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
