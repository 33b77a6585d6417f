import {
  createSortedRowModel,
  type RowData,
  type RowSelectionState,
  rowSelectionFeature,
  rowSortingFeature,
  type SortingState,
  sortFns,
  tableFeatures,
  useTable,
} from '@tanstack/react-table';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, startTransition, useMemo, useRef, useState } from 'react';
import { Button } from './button.tsx';
import { count } from './format.ts';
import { ArrowDown, ArrowUp, ChevronsUpDown } from './icons.ts';
import './table.css';

const features = tableFeatures({
  rowSortingFeature,
  rowSelectionFeature,
  sortedRowModel: createSortedRowModel(),
  sortFns,
});

export type Column<T> = {
  id: string;
  name: string;
  cell: (row: T) => ReactNode;
  /** Returns what the column is sorted by. Without it, the column is not sortable. */
  sort?: (row: T) => string | number;
  /** `main` is the row's name. `actions` and `thumb` have no heading. `wide` is left out if there is no room. */
  look?: 'main' | 'number' | 'actions' | 'wide' | 'thumb';
};

type Selection<T> = { actions: (rows: T[], clear: () => void) => ReactNode; nameOf: (row: T) => string };

/** As in table.css; the cards of a phone are measured. */
const rowHeight = 36;
/** Longer tables render only the rows in view. */
const drawnWholeMax = 60;

/**
 * The console's table, with sorting, selection and virtual rows. On a phone, each row is a card with labelled cells.
 * @param order how the server sorts; without it, the loaded rows are sorted here
 */
export function DataTable<T extends RowData>({
  label,
  columns,
  rows,
  rowId,
  selection,
  order,
  isPart = false,
  rowClass,
}: {
  label: string;
  columns: Column<T>[];
  rows: T[];
  rowId: (row: T) => string;
  selection?: Selection<T> | undefined;
  order?: { value: string; onChange: (value: string) => void };
  /** Whether there are more rows on other pages. */
  isPart?: boolean;
  rowClass?: (row: T) => string;
}) {
  const [ownSorting, setOwnSorting] = useState<SortingState>([]);
  const [selected, setSelected] = useState<RowSelectionState>({});
  const sorting = order ? readOrder(order.value) : ownSorting;
  const latest = useRef(columns);
  latest.current = columns;
  const shape = columns.map(({ id, sort }) => `${id}${sort ? '+' : ''}`).join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the cells are drawn from the latest columns
  const definitions = useMemo(
    () =>
      latest.current.map(({ id, sort }) => ({
        id,
        accessorFn: (row: T) => latest.current.find((column) => column.id === id)?.sort?.(row) ?? '',
        enableSorting: sort !== undefined,
        sortFn: 'alphanumeric' as const,
      })),
    [shape],
  );
  const table = useTable({
    features,
    data: rows,
    columns: definitions,
    getRowId: rowId,
    manualSorting: order !== undefined,
    state: { sorting, rowSelection: selected },
    onSortingChange: (change) => {
      const next = typeof change === 'function' ? change(sorting) : change;
      if (order) order.onChange(next[0] ? `${next[0].desc ? '-' : ''}${next[0].id}` : '');
      // Drawing the rows in another order takes long; the button is painted first.
      else startTransition(() => setOwnSorting(next));
    },
    onRowSelectionChange: (change) => setSelected(typeof change === 'function' ? change(selected) : change),
  });
  const shown = table.getRowModel().rows;
  const chosen = shown.filter((row) => selected[row.id]).map((row) => row.original);
  const clear = () => setSelected({});
  const scroller = useRef<HTMLDivElement>(null);
  const isVirtual = shown.length > drawnWholeMax;
  const virtual = useVirtualizer({
    count: isVirtual ? shown.length : 0,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
    getItemKey: (index) => shown[index]?.id ?? index,
  });
  const items = virtual.getVirtualItems();
  const inView = isVirtual
    ? items.map(({ index }) => ({ index, row: shown[index] }))
    : shown.map((row, index) => ({ index, row }));
  const before = isVirtual ? (items[0]?.start ?? 0) : 0;
  const behind = isVirtual ? virtual.getTotalSize() - (items.at(-1)?.end ?? 0) : 0;
  const width = columns.length + (selection ? 1 : 0);

  return (
    <div className="table">
      {selection && chosen.length > 0 ? (
        <div className="bulk" role="toolbar" aria-label={`Actions for the selected rows of ${label}`}>
          <strong>{count(chosen.length, 'row')} selected</strong>
          {selection.actions(chosen, clear)}
          <Button kind="quiet" onClick={clear}>
            Clear
          </Button>
        </div>
      ) : null}
      {isPart && order === undefined && sorting.length > 0 ? (
        <p className="hint" role="status">
          Only the rows of this page are sorted.
        </p>
      ) : null}
      <div
        ref={scroller}
        className={isVirtual ? 'scroller virtual' : 'scroller'}
        {...(isVirtual ? { role: 'group', 'aria-label': `${label}, scrollable`, tabIndex: 0 } : {})}
      >
        <table className="list" aria-label={label} aria-rowcount={isVirtual ? shown.length + 1 : undefined}>
          <thead>
            <tr>
              {selection ? (
                <th scope="col" className="select">
                  <input
                    type="checkbox"
                    aria-label={`Select all rows of ${label}`}
                    checked={shown.length > 0 && chosen.length === shown.length}
                    onChange={table.getToggleAllRowsSelectedHandler()}
                  />
                </th>
              ) : null}
              {columns.map(({ id, name, look, sort }) => {
                const direction = sorting.find((one) => one.id === id);
                return (
                  <th
                    key={id}
                    scope="col"
                    className={look === 'number' ? 'number' : look === 'wide' ? 'wide-only' : undefined}
                    aria-sort={direction ? (direction.desc ? 'descending' : 'ascending') : undefined}
                  >
                    {look === 'actions' || look === 'thumb' ? (
                      <span className="hidden">{name}</span>
                    ) : sort ? (
                      <button type="button" className="sort" onClick={table.getColumn(id)?.getToggleSortingHandler()}>
                        {name} <SortIcon direction={direction} />
                      </button>
                    ) : (
                      name
                    )}
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody>
            {before > 0 ? <Gap width={width} height={before} /> : null}
            {inView.map(({ index, row }) =>
              row === undefined ? null : (
                <tr
                  key={row.id}
                  ref={isVirtual ? virtual.measureElement : undefined}
                  data-index={index}
                  aria-rowindex={isVirtual ? index + 2 : undefined}
                  className={rowClass?.(row.original)}
                  aria-selected={selection ? Boolean(selected[row.id]) : undefined}
                >
                  {selection ? (
                    <td className="select">
                      <input
                        type="checkbox"
                        aria-label={`Select ${selection.nameOf(row.original)}`}
                        checked={Boolean(selected[row.id])}
                        onChange={row.getToggleSelectedHandler()}
                      />
                    </td>
                  ) : null}
                  {columns.map(({ id, name, look, cell }) => (
                    // A name that is written from right to left is cut at its end too.
                    <td key={id} dir="auto" className={cellClasses[look ?? 'plain']} data-label={name}>
                      {cell(row.original)}
                    </td>
                  ))}
                </tr>
              ),
            )}
            {behind > 0 ? <Gap width={width} height={behind} /> : null}
          </tbody>
        </table>
      </div>
    </div>
  );
}

const cellClasses = {
  main: 'main',
  number: 'number',
  actions: 'row-actions',
  wide: 'wide-only',
  thumb: 'thumb',
  plain: '',
};

function readOrder(value: string): SortingState {
  if (value === '') return [];
  return [{ id: value.replace(/^-/, ''), desc: value.startsWith('-') }];
}

function SortIcon({ direction }: { direction: { desc: boolean } | undefined }) {
  const Icon = direction === undefined ? ChevronsUpDown : direction.desc ? ArrowDown : ArrowUp;
  return <Icon size={13} aria-hidden="true" />;
}

/** Fills the space of rows that are not rendered. */
function Gap({ width, height }: { width: number; height: number }) {
  return (
    <tr className="gap">
      <td colSpan={width} style={{ height }} />
    </tr>
  );
}

/** Pagination. */
export function Pager({
  page,
  onPage,
}: {
  page: { page: number; total_pages: number; total_entries: number; has_next: boolean; has_prev: boolean };
  onPage: (page: number) => void;
}) {
  const entries = count(page.total_entries, 'entry', 'entries');
  if (page.total_pages <= 1) return <p className="pager faint">{entries}</p>;
  return (
    <nav className="pager" aria-label="Pages">
      <Button kind="plain" disabled={!page.has_prev} onClick={() => onPage(page.page - 1)}>
        Newer
      </Button>
      <span className="faint">
        Page {page.page} of {page.total_pages.toLocaleString('en')} · {entries}
      </span>
      <Button kind="plain" disabled={!page.has_next} onClick={() => onPage(page.page + 1)}>
        Older
      </Button>
    </nav>
  );
}
