import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { Grant, StoredFile } from '../../api/generated.ts';
import { PrincipalPicker } from '../../principals/picker.tsx';
import { PrincipalName } from '../../principals/principal-name.tsx';
import './acl-editor.css';
import { Button } from '../../ui/button.tsx';
import { Field } from '../../ui/field.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { useAction } from '../../ui/query.ts';

type Kind = Grant['principal_type'];
const kinds: Record<Kind, string> = {
  user: 'User',
  team: 'Team',
  org: 'Organisation',
  org_role: 'Role in the organisation',
  agent: 'Agent',
  everyone: 'Everyone in the app',
};

/** Who else may read or change the file. Each change is saved immediately. */
export function AclEditor({ file, onChange }: { file: StoredFile; onChange: (file: StoredFile) => void }) {
  const grants = file.acl?.grants ?? [];
  const [kind, setKind] = useState<Kind>('user');
  const [principal, setPrincipal] = useState('');
  const [right, setRight] = useState('read');
  const save = useAction(async (acl: NonNullable<Parameters<typeof patch>[1]>) => onChange(await patch(file.id, acl)));

  async function add() {
    const named = kind === 'everyone' ? {} : { principal: principal.trim() };
    const added = await save.run({ add: [{ principal_type: kind, ...named, actions: [right] }] });
    if (added) setPrincipal('');
  }

  return (
    <>
      {grants.length === 0 ? <p className="faint">Only the owner has access.</p> : null}
      <ul className="grants">
        {grants.map((grant) => (
          <li key={`${grant.principal_type}/${grant.principal}`}>
            <span className="cut">
              {kinds[grant.principal_type]}{' '}
              {grant.principal === undefined ? null : grant.principal_type === 'org_role' ? (
                grant.principal
              ) : (
                <PrincipalName id={grant.principal} />
              )}
            </span>
            <span className="faint">{grant.actions.join(', ')}</span>
            <Button
              kind="quiet"
              aria-label={`Remove ${kinds[grant.principal_type]} ${grant.principal ?? ''}`}
              disabled={save.busy}
              onClick={() =>
                save.run({
                  remove: [
                    {
                      principal_type: grant.principal_type,
                      ...(grant.principal === undefined ? {} : { principal: grant.principal }),
                    },
                  ],
                })
              }
            >
              Remove
            </Button>
          </li>
        ))}
      </ul>
      <form
        className="inline-form"
        onSubmit={(event) => {
          event.preventDefault();
          void add();
        }}
      >
        <Field label="Give access to">
          {(id) => (
            <select
              id={id}
              value={kind}
              onChange={(event) => {
                setKind(event.target.value as Kind);
                setPrincipal('');
              }}
            >
              {Object.entries(kinds).map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        {kind === 'everyone' ? null : (
          <Field label={kind === 'org_role' ? 'Role' : 'Which'}>
            {(id) =>
              kind === 'org_role' ? (
                <select id={id} required value={principal} onChange={(event) => setPrincipal(event.target.value)}>
                  <option value="">Choose</option>
                  {['admin', 'member', 'viewer'].map((role) => (
                    <option key={role}>{role}</option>
                  ))}
                </select>
              ) : (
                <PrincipalPicker
                  label="Which"
                  id={id}
                  kinds={[kind]}
                  any="Choose…"
                  value={principal}
                  onChange={setPrincipal}
                />
              )
            }
          </Field>
        )}
        <Field label="May">
          {(id) => (
            <select id={id} value={right} onChange={(event) => setRight(event.target.value)}>
              <option value="read">read</option>
              <option value="write">read and change</option>
            </select>
          )}
        </Field>
        <Button type="submit" busy={save.busy} disabled={kind !== 'everyone' && principal === ''}>
          Give access
        </Button>
      </form>
      <ErrorNotice error={save.error} />
    </>
  );
}

function patch(
  file: string,
  acl: { add?: Grant[]; remove?: { principal_type: Kind; principal?: string }[] },
): Promise<StoredFile> {
  return call('PATCH /api/v1/files/{file}', { path: { file }, body: { acl } });
}
