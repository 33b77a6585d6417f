import type { RowData } from '@tanstack/react-table';
import type { ReactNode } from 'react';
import type { Loaded } from './query.ts';
import { Shown } from './shown.tsx';
import { DataTable, Pager } from './table.tsx';

type PageOf<T> = {
  page_size: number;
  data: T[];
  page: number;
  total_pages: number;
  total_entries: number;
  has_next: boolean;
  has_prev: boolean;
};

/** A list from the API as a paged table. If there is nothing, shows `empty` instead. */
export function PagedTable<T extends RowData>({
  loaded,
  empty,
  onPage,
  ...table
}: Omit<Parameters<typeof DataTable<T>>[0], 'rows'> & {
  loaded: Loaded<PageOf<T>>;
  empty: ReactNode;
  onPage: (page: number) => void;
}) {
  return (
    <Shown loaded={loaded}>
      {(list) =>
        list.data.length === 0 && list.page === 1 ? (
          empty
        ) : (
          <>
            <DataTable {...table} rows={list.data} isPart={list.total_pages > 1} />
            <Pager page={list} onPage={onPage} />
          </>
        )
      }
    </Shown>
  );
}
