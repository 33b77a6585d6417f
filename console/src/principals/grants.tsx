import type { ReactNode } from 'react';
import type { ReadGrant } from '../api/generated.ts';
import { Button } from '../ui/button.tsx';
import { Field } from '../ui/field.tsx';
import './grants.css';
import { PrincipalPicker } from './picker.tsx';
import { PrincipalName } from './principal-name.tsx';

/** Whom a grant names. */
export type Grantee = Pick<ReadGrant, 'principal_type' | 'principal'>;
type Kind = Grantee['principal_type'];
type GranteeKinds = Partial<Record<Kind, string>>;

export const granteeKinds: Record<Exclude<Kind, 'everyone'>, string> = {
  user: 'User',
  team: 'Team',
  group: 'Group',
  org: 'Organisation',
  org_role: 'Role in the organisation',
  agent: 'Agent',
};

/** Identifies a grantee in a list. */
export const granteeKey = ({ principal_type, principal = '' }: Grantee) => `${principal_type}/${principal}`;

/** The grants of a resource. With `onRemove`, each can be removed. */
export function GrantList<G extends Grantee>({
  grants,
  kinds,
  note = () => undefined,
  busy = false,
  onRemove,
}: {
  grants: G[];
  kinds: GranteeKinds;
  /** What is shown after the name. */
  note?: (grant: G, at: number) => ReactNode;
  busy?: boolean;
  onRemove?: (grant: G) => void;
}) {
  return (
    <ul className="grants">
      {grants.map((grant, at) => (
        <li key={granteeKey(grant)}>
          <span className="cut">
            <span className={grant.principal === undefined ? '' : 'faint'}>{kinds[grant.principal_type]}</span>{' '}
            {grant.principal_type === 'org_role' ? (
              grant.principal
            ) : grant.principal === undefined ? null : (
              <PrincipalName id={grant.principal} isLink={onRemove === undefined} />
            )}
          </span>
          {note(grant, at)}
          {onRemove === undefined ? null : (
            <Button
              kind="quiet"
              aria-label={`Remove ${kinds[grant.principal_type]} ${grant.principal ?? ''}`.trimEnd()}
              disabled={busy}
              onClick={() => onRemove(grant)}
            >
              Remove
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Chooses a kind, and then one of it by its name. */
export function GranteeFields({
  label,
  kinds,
  value: { principal_type: kind, principal = '' },
  onChange,
}: {
  label: string;
  kinds: GranteeKinds;
  value: Grantee;
  onChange: (value: Grantee) => void;
}) {
  const choose = (chosen: string) =>
    onChange({ principal_type: kind, ...(chosen === '' ? {} : { principal: chosen }) });
  return (
    <>
      <Field label={label}>
        {(id) => (
          <select id={id} value={kind} onChange={(event) => onChange({ principal_type: event.target.value as Kind })}>
            {Object.entries(kinds).map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
      {kind === 'everyone' ? null : (
        <Field label={kind === 'org_role' ? 'Role' : 'Which'}>
          {(id) =>
            kind === 'org_role' ? (
              <select id={id} value={principal} onChange={(event) => choose(event.target.value)}>
                <option value="">Choose…</option>
                {['admin', 'member', 'viewer'].map((role) => (
                  <option key={role}>{role}</option>
                ))}
              </select>
            ) : (
              <PrincipalPicker label="Which" id={id} kinds={[kind]} any="Choose…" value={principal} onChange={choose} />
            )
          }
        </Field>
      )}
    </>
  );
}
