import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { StoredFile, UpdateFileRequest } from '../../api/generated.ts';
import { type Grantee, GranteeFields, GrantList, granteeKinds } from '../../principals/grants.tsx';
import { Button } from '../../ui/button.tsx';
import { Field } from '../../ui/field.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { useAction } from '../../ui/query.ts';

const { group: _documentsOnly, ...named } = granteeKinds;
const kinds = { ...named, everyone: 'Everyone in the app' };
type FileGrantee = { principal_type: keyof typeof kinds; principal?: string };

/** Who else may read or change the file. Each change is saved immediately. */
export function AclEditor({ file, onChange }: { file: StoredFile; onChange: (file: StoredFile) => void }) {
  const grants = file.acl?.grants ?? [];
  const [grantee, setGrantee] = useState<Grantee>({ principal_type: 'user' });
  const [right, setRight] = useState('read');
  const save = useAction(async (acl: NonNullable<UpdateFileRequest['acl']>) =>
    onChange(await call('PATCH /api/v1/files/{file}', { path: { file: file.id }, body: { acl } })),
  );

  async function add() {
    const { principal_type } = grantee;
    const added = await save.run({ add: [{ ...(grantee as FileGrantee), actions: [right] }] });
    if (added) setGrantee({ principal_type });
  }

  return (
    <>
      {grants.length === 0 ? <p className="faint">Only the owner has access.</p> : null}
      <GrantList
        grants={grants}
        kinds={kinds}
        note={({ actions }) => <span className="faint">{actions.join(', ')}</span>}
        busy={save.busy}
        onRemove={({ actions: _, ...removed }) => void save.run({ remove: [removed] })}
      />
      <form
        className="inline-form"
        onSubmit={(event) => {
          event.preventDefault();
          void add();
        }}
      >
        <GranteeFields label="Give access to" kinds={kinds} value={grantee} onChange={setGrantee} />
        <Field label="May">
          {(id) => (
            <select id={id} value={right} onChange={(event) => setRight(event.target.value)}>
              <option value="read">read</option>
              <option value="write">read and change</option>
            </select>
          )}
        </Field>
        <Button
          type="submit"
          busy={save.busy}
          disabled={grantee.principal_type !== 'everyone' && grantee.principal === undefined}
        >
          Give access
        </Button>
      </form>
      <ErrorNotice error={save.error} />
    </>
  );
}
