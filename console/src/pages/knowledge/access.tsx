import { useState } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/client.ts';
import type { KnowledgeDocument } from '../../api/generated.ts';
import { type Grantee, GranteeFields, GrantList, granteeKey, granteeKinds } from '../../principals/grants.tsx';
import { useSession } from '../../session.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog, Form } from '../../ui/dialog.tsx';
import { fieldError } from '../../ui/field.tsx';
import { useAction } from '../../ui/query.ts';

const kinds = { ...granteeKinds, everyone: 'Every reader of the source' };

/** Who sees a document. */
export function Access({ document }: { document: KnowledgeDocument }) {
  const { isDeveloper } = useSession();
  const [changing, setChanging] = useState(false);
  const { acl } = document;
  return (
    <section className="card">
      {acl === undefined ? (
        <p>
          {isDeveloper
            ? 'Every reader of the source sees this document.'
            : 'Every reader of the source sees this document, unless somebody who may change the source has restricted it.'}
        </p>
      ) : acl.grants.length === 0 ? (
        <p>Nobody is named: only developers and secret keys see this document.</p>
      ) : (
        <>
          <p>Of the readers of the source, only these see this document:</p>
          <GrantList grants={acl.grants} kinds={kinds} />
        </>
      )}
      <p className="faint">
        The owner of the source decides who its readers are. A restriction narrows them, and never adds one. Developers
        and secret keys see all documents.
      </p>
      <div className="actions">
        <Button onClick={() => setChanging(true)}>Change access</Button>
      </div>
      {changing ? <AccessDialog document={document} onClose={() => setChanging(false)} /> : null}
    </section>
  );
}

function AccessDialog({ document, onClose }: { document: KnowledgeDocument; onClose: () => void }) {
  const { isDeveloper } = useSession();
  const [restricted, setRestricted] = useState(document.acl !== undefined);
  const [grants, setGrants] = useState<Grantee[]>(document.acl?.grants ?? []);
  const [kind, setKind] = useState<Grantee['principal_type']>('user');
  const path = { document: document.id };
  const save = useAction(
    async () => {
      if (restricted) {
        await call('PATCH /api/v1/knowledge_documents/{document}/acl', { path, body: { grants } });
      } else await call('DELETE /api/v1/knowledge_documents/{document}/acl', { path });
      onClose();
    },
    {
      say: 'Saved.',
      refresh: ['GET /api/v1/knowledge_documents/{document}', 'GET /api/v1/knowledge_documents'],
    },
  );
  const add = (grantee: Grantee) => {
    save.clear();
    setKind(grantee.principal_type);
    if (grantee.principal === undefined || grants.some((one) => granteeKey(one) === granteeKey(grantee))) return;
    setGrants([...grants, grantee]);
  };
  // Groups are listed for developers only, and a role is one in the organisation of the source.
  const { group, org_role, ...always } = granteeKinds;
  const offered = { ...always, ...(isDeveloper ? { group } : {}), ...(document.org === undefined ? {} : { org_role }) };
  return (
    <Dialog title="Who sees this document?" onClose={onClose}>
      <Form
        submit="Save"
        busy={save.busy}
        error={save.error}
        shownFields={grants.map((_, at) => `grants.${at}`)}
        onSubmit={() => save.run()}
        onCancel={onClose}
      >
        <fieldset className="choices">
          <legend>Readers</legend>
          <Choice
            name="Every reader of the source"
            hint="As its owner decides."
            checked={!restricted}
            onChoose={() => setRestricted(false)}
          />
          <Choice
            name="Only some of them"
            hint="Those whom you name below."
            checked={restricted}
            onChoose={() => setRestricted(true)}
          />
        </fieldset>
        {restricted ? (
          <>
            <GrantList
              grants={grants}
              kinds={kinds}
              note={(_, at) => <span className="hint wrong">{fieldError(save.error, `grants.${at}`)}</span>}
              onRemove={(removed) => {
                save.clear();
                setGrants(grants.filter((one) => one !== removed));
              }}
            />
            {grants.length === 0 ? (
              <p className="notice warning">Without a name, only developers and secret keys see the document.</p>
            ) : null}
            <div className="row">
              <GranteeFields label="Add" kinds={offered} value={{ principal_type: kind }} onChange={add} />
            </div>
          </>
        ) : null}
        {restricted && document.file !== undefined ? (
          <p className="hint">
            The document comes from a file. Those who read the file must be among the readers here:{' '}
            <Link href={`/files/${document.file}`}>see who reads it</Link>.
          </p>
        ) : null}
      </Form>
    </Dialog>
  );
}

function Choice({
  name,
  hint,
  checked,
  onChoose,
}: {
  name: string;
  hint: string;
  checked: boolean;
  onChoose: () => void;
}) {
  return (
    <label>
      <input type="radio" name="readers" checked={checked} onChange={onChoose} />
      <span>
        <strong>{name}</strong>
        <span className="hint">{hint}</span>
      </span>
    </label>
  );
}
