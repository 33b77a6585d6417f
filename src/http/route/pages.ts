import type { Static, TSchema } from 'typebox';
import { limits } from '../../lib/limits.ts';
import { Type } from '../../lib/type.ts';
import { integerRange } from './validation.ts';

/** The query members of every paged list. */
export const pageQuery = {
  page: Type.Optional(Type.Integer({ ...integerRange, description: 'Page number, from 1. Default 1.' })),
  page_size: Type.Optional(
    Type.Integer({ ...integerRange, description: 'Entries per page. Default 25; more than 100 counts as 100.' }),
  ),
};

const pageQuerySchema = Type.Object(pageQuery);

export type PageRequest = { page: number; pageSize: number; offset: number };

/** The requested page, with defaults and limits applied. */
export function pageRequest(query: Static<typeof pageQuerySchema>): PageRequest {
  const page = query.page ?? 1;
  const pageSize = Math.min(query.page_size ?? limits.pageSizeDefault, limits.pageSizeMax);
  return { page, pageSize, offset: (page - 1) * pageSize };
}

/** The schema of a page of one kind of item. */
export function pageOf<T extends TSchema>(item: T) {
  return Type.Object({
    data: Type.Array(item),
    page: Type.Integer(),
    page_size: Type.Integer(),
    total_entries: Type.Integer(),
    total_pages: Type.Integer(),
    has_next: Type.Boolean(),
    has_prev: Type.Boolean(),
  });
}

type Page<T> = {
  data: T[] | AsyncIterable<T>;
  page: number;
  page_size: number;
  total_entries: number;
  total_pages: number;
  has_next: boolean;
  has_prev: boolean;
};

/** The list response: this page's `rows` and the exact total. */
export function page<T>(request: PageRequest, rows: T[] | AsyncIterable<T>, total: number): Page<T> {
  const totalPages = Math.ceil(total / request.pageSize);
  return {
    data: rows,
    page: request.page,
    page_size: request.pageSize,
    total_entries: total,
    total_pages: totalPages,
    has_next: request.page < totalPages,
    has_prev: request.page > 1 && total > 0,
  };
}

/** The response of a list: the requested page of what `list` finds, with its exact total, and each row as JSON. */
export async function readPage<Row, T>(
  query: Static<typeof pageQuerySchema>,
  list: (request: PageRequest) => Promise<[Row[], number]>,
  present: (row: Row) => T | Promise<T>,
): Promise<Page<Awaited<T>>> {
  const request = pageRequest(query);
  const [rows, total] = await list(request);
  return page(request, await Promise.all(rows.map((row) => present(row))), total);
}
