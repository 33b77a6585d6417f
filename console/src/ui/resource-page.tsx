import type { RowData } from '@tanstack/react-table';
import { type ReactNode, useState } from 'react';
import { Button } from './button.tsx';
import { Confirm } from './dialog.tsx';
import { FormDialog } from './form-dialog.tsx';
import { Empty, PageHead } from './page.tsx';
import { PagedTable } from './paged-table.tsx';
import { useAction } from './query.ts';
import { toast } from './toast.tsx';

type TableProps = Parameters<typeof PagedTable>[0];
type FormProps = Omit<Parameters<typeof FormDialog>[0], 'onClose'>;

/** A list of one kind of resource: its table, its filters, and the form that creates one. */
export function ResourcePage<T extends RowData>({
  title,
  lead,
  create,
  above,
  children,
  empty,
  filtered,
  ...table
}: Omit<TableProps, 'columns' | 'loaded' | 'rowId' | 'empty' | 'selection' | 'order' | 'rowClass'> &
  Pick<Parameters<typeof PagedTable<T>>[0], 'columns' | 'loaded' | 'rowId' | 'rowClass' | 'selection'> & {
    title: string;
    lead: string;
    /** The button and the form for a new resource. */
    create?: (FormProps & { button: string }) | undefined;
    /** What is shown before the filters and the table. */
    above?: ReactNode;
    /** Filters above the table. */
    children?: ReactNode;
    /** The text for an app that has none. */
    empty: string;
    filtered?: boolean;
  }) {
  const [creating, setCreating] = useState(false);
  const button = create ? (
    <Button kind="primary" onClick={() => setCreating(true)}>
      {create.button}
    </Button>
  ) : undefined;
  return (
    <>
      <PageHead title={title} lead={lead}>
        {button}
      </PageHead>
      {above}
      {children === undefined ? null : <div className="toolbar">{children}</div>}
      <PagedTable<T>
        {...table}
        empty={
          filtered ? (
            <Empty title="Nothing matches">Change the search or the filter.</Empty>
          ) : (
            <Empty title={`No ${title.toLowerCase()} yet`} action={button}>
              {empty}
            </Empty>
          )
        }
      />
      {creating && create ? <FormDialog {...create} onClose={() => setCreating(false)} /> : null}
    </>
  );
}

/** What the console says after the action on a button. */
const said: Record<string, string> = {
  ...{ Delete: 'Deleted.', Remove: 'Removed.', Revoke: 'Revoked.', Disconnect: 'Disconnected.' },
};

/** A button that deletes after a confirmation. If `perform` returns a function, that restores what was deleted. */
export function DeleteButton({
  title,
  action,
  label = 'Delete',
  quiet,
  perform,
  children,
}: {
  title: string;
  action: string;
  label?: string;
  /** For a button in a table row: names what it deletes. */
  quiet?: string;
  perform: () => Promise<unknown>;
  children: ReactNode;
}) {
  const [asking, setAsking] = useState(false);
  const remove = useAction(async () => {
    const undo = await perform();
    toast(said[label] ?? 'Done.', 'good', typeof undo === 'function' ? (undo as () => Promise<unknown>) : undefined);
  });
  return (
    <>
      <Button
        kind={quiet === undefined ? 'danger' : 'quiet'}
        {...(quiet === undefined ? {} : { 'aria-label': `${label} ${quiet}` })}
        onClick={() => setAsking(true)}
      >
        {label}
      </Button>
      {asking ? (
        <Confirm
          title={title}
          action={action}
          busy={remove.busy}
          error={remove.error}
          onClose={() => setAsking(false)}
          onConfirm={async () => {
            if (await remove.run()) setAsking(false);
          }}
        >
          {children}
        </Confirm>
      ) : null}
    </>
  );
}
