import { invalidField } from '../lib/errors.ts';

const depthMax = 5;
const conditionsMax = 100;
const comparisons = new Set(['gt', 'gte', 'lt', 'lte', 'ne', 'in']);

type Filter = Record<string, unknown>;
/** How many more conditions the filter may have. */
type Budget = { left: number };

/** Converts a comparison or compound filter of OpenAI to a search filter. Throws 422 and names the wrong member. */
export function readFilters(filter: unknown, at = 'filters'): Filter {
  return readFilter(filter, at, 0, { left: conditionsMax });
}

function readFilter(filter: unknown, at: string, depth: number, budget: Budget): Filter {
  if (typeof filter !== 'object' || filter === null || Array.isArray(filter))
    throw invalidField(at, 'must be a filter');
  if (depth > depthMax) throw invalidField(at, `is nested deeper than ${depthMax} levels`);
  const { type, filters } = filter as Filter;
  spend(budget, 1);
  if (type !== 'and' && type !== 'or') return readComparison(filter as Filter, at, budget);
  requireOnly(filter as Filter, ['type', 'filters'], at);
  if (!Array.isArray(filters) || filters.length === 0) throw invalidField(`${at}.filters`, 'must be a list of filters');
  return { [type]: filters.map((each, i) => readFilter(each, `${at}.filters.${i}`, depth + 1, budget)) };
}

function spend(budget: Budget, count: number): void {
  budget.left -= count;
  if (budget.left < 0) throw invalidField('filters', `has more than ${conditionsMax} conditions and values`);
}

function readComparison(filter: Filter, at: string, budget: Budget): Filter {
  requireOnly(filter, ['type', 'key', 'value'], at);
  const { type, key, value } = filter;
  if (typeof key !== 'string' || key === '') throw invalidField(`${at}.key`, 'must be the name of an attribute');
  // Search filters reserve these names.
  if (key === 'and' || key === 'or') throw invalidField(`${at}.key`, `must not be ${key}`);
  const isList = type === 'in' || type === 'nin';
  const values = isList && Array.isArray(value) ? value : [value];
  if (isList !== Array.isArray(value) || !values.every(isScalar))
    throw invalidField(
      `${at}.value`,
      isList ? 'must be a list of values' : 'must be a string, a number, true or false',
    );
  if (isList) spend(budget, values.length);
  if (type === 'eq') return { [key]: value };
  if (type === 'nin') return { and: values.map((each) => ({ [key]: { ne: each } })) };
  if (typeof type !== 'string' || !comparisons.has(type))
    throw invalidField(`${at}.type`, 'must be one of eq, ne, gt, gte, lt, lte, in, nin, and, or');
  if (typeof value === 'boolean' && type !== 'ne') throw invalidField(`${at}.value`, 'must be a number or a string');
  return { [key]: { [type]: value } };
}

function isScalar(value: unknown): boolean {
  return ['string', 'number', 'boolean'].includes(typeof value);
}

/** Copies nothing: a filter may have tens of thousands of members. */
function requireOnly(filter: Filter, names: readonly string[], at: string): void {
  const other = Object.keys(filter).find((name) => !names.includes(name));
  if (other !== undefined) throw invalidField(`${at}.${other}`, 'is not a known member of this request');
}
