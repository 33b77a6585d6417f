import type { ReactNode } from 'react';
import { withVisibleTurns } from './direction.ts';
import type { LucideIcon } from './icons.ts';
import { Inbox } from './icons.ts';
import './empty.css';
import './layout.css';
import './page-head.css';
import { usePageTitle } from './title.ts';

/** A heading, a one-line description and the actions of a page. */
export function PageHead({
  title,
  crumb,
  lead,
  children,
}: {
  title: ReactNode;
  /** The name in the breadcrumbs, if the title is more than text. */
  crumb?: string;
  lead?: ReactNode;
  children?: ReactNode;
}) {
  const shown = typeof title === 'string' ? withVisibleTurns(title) : title;
  usePageTitle(crumb ?? (typeof shown === 'string' ? shown : undefined));
  return (
    <header className="page-head">
      <div>
        <h1>{shown}</h1>
        {lead === undefined ? null : <div className="lead">{lead}</div>}
      </div>
      {children === undefined ? null : <div className="actions">{children}</div>}
    </header>
  );
}

/** An empty state: explains what appears here and the first step. */
export function Empty({
  title,
  children,
  action,
  icon: Icon = Inbox,
}: {
  title: string;
  children: ReactNode;
  action?: ReactNode;
  icon?: LucideIcon;
}) {
  return (
    <div className="empty">
      <Icon aria-hidden="true" strokeWidth={1.5} />
      <h2>{title}</h2>
      <p>{children}</p>
      {action}
    </div>
  );
}

/** Names and values. Rows with absent values are left out. */
export function Details({ rows }: { rows: [name: string, value: ReactNode][] }) {
  return (
    <dl className="details">
      {rows.map(([name, value]) =>
        value === undefined || value === null || value === '' ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}
