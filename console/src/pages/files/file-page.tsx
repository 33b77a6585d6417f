import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import type { StoredFile } from '../../api/generated.ts';
import { Owner } from '../../principals/principal-name.tsx';
import { Button } from '../../ui/button.tsx';
import { Json } from '../../ui/code.tsx';
import { Copy, Id } from '../../ui/copy.tsx';
import { Confirm, Dialog, Form } from '../../ui/dialog.tsx';
import { Field, Switch } from '../../ui/field.tsx';
import { bytes } from '../../ui/format.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Details, PageHead } from '../../ui/page.tsx';
import { optimistically, refresh, useAction, useApi } from '../../ui/query.ts';
import { Shown } from '../../ui/shown.tsx';
import { Time } from '../../ui/time.tsx';
import { AclEditor } from './acl-editor.tsx';
import { Preview } from './preview.tsx';

/** One file: its contents, access list and actions. */
export function FilePage({ id }: { id: string }) {
  const loaded = useApi('GET /api/v1/files/{file}', { path: { file: id }, query: { width: 1024 } });
  const [, navigate] = useLocation();
  const [asking, setAsking] = useState<'delete' | 'rename'>();
  const remove = useAction(async () => {
    await call('DELETE /api/v1/files/{file}', { path: { file: id } });
    refresh('GET /api/v1/files');
  });
  return (
    <Shown loaded={loaded}>
      {(file) => (
        <>
          <PageHead
            title={file.filename}
            lead={
              <>
                {file.content_type} · {bytes(file.size)} · added <Time at={file.created_at} />
              </>
            }
          >
            <a className="button plain" href={file.url} download={file.filename}>
              Download
            </a>
            <Link className="button plain" href={`/extractions?file=${file.id}`}>
              Extract text
            </Link>
            <Button onClick={() => setAsking('rename')}>Rename</Button>
            <Button kind="danger" onClick={() => setAsking('delete')}>
              Delete
            </Button>
          </PageHead>
          <div className="columns">
            <section className="card grow" aria-label="Preview">
              <Preview file={file} />
            </section>
            <div className="stack">
              <Sharing file={file} onChange={loaded.replace} />
              <section className="card">
                <h2>Access</h2>
                {file.acl ? (
                  <AclEditor file={file} onChange={loaded.replace} />
                ) : (
                  <p className="faint">Only the owner of the file can see and change who has access.</p>
                )}
              </section>
              <Facts file={file} />
            </div>
          </div>
          {asking === 'delete' ? (
            <Confirm
              title={`Delete ${file.filename}?`}
              action="Delete the file"
              busy={remove.busy}
              error={remove.error}
              onClose={() => setAsking(undefined)}
              onConfirm={async () => {
                if (await remove.run()) navigate('/files');
              }}
            >
              This also deletes its contents, links and access list. This cannot be undone.
            </Confirm>
          ) : null}
          {asking === 'rename' ? (
            <Rename file={file} onClose={() => setAsking(undefined)} onChange={loaded.replace} />
          ) : null}
        </>
      )}
    </Shown>
  );
}

function Rename({
  file,
  onChange,
  onClose,
}: {
  file: StoredFile;
  onChange: (file: StoredFile) => void;
  onClose: () => void;
}) {
  const [filename, setFilename] = useState(file.filename);
  const rename = useAction(async () => {
    const path = { file: file.id };
    await optimistically(file, { ...file, filename }, onChange, () =>
      call('PATCH /api/v1/files/{file}', { path, body: { filename } }),
    );
    onClose();
  });
  return (
    <Dialog title="Rename" onClose={onClose}>
      <Form submit="Rename" busy={rename.busy} error={rename.error} onSubmit={() => rename.run()} onCancel={onClose}>
        <Field label="File name">
          {(id) => <input id={id} required value={filename} onChange={(event) => setFilename(event.target.value)} />}
        </Field>
      </Form>
    </Dialog>
  );
}

function Sharing({ file, onChange }: { file: StoredFile; onChange: (file: StoredFile) => void }) {
  const isImage = file.content_type.startsWith('image/');
  const share = useAction((shared: boolean) =>
    optimistically(file, { ...file, shared }, onChange, () =>
      call('PATCH /api/v1/files/{file}', { path: { file: file.id }, body: { share: shared } }),
    ),
  );
  return (
    <section className="card">
      <h2>Public link</h2>
      <Switch
        label="Anyone with the link can view it"
        checked={file.shared}
        disabled={share.busy || (!isImage && !file.shared)}
        onChange={(shared) => share.run(shared)}
      />
      {isImage ? null : <p className="hint">Only images can have a public link. Give others access below.</p>}
      {file.share_url === undefined ? null : (
        <div className="with-button">
          <input readOnly aria-label="Public link" value={file.share_url} onFocus={(event) => event.target.select()} />
          <Copy text={file.share_url} />
        </div>
      )}
      {isImage && !file.shared ? <p className="hint">The link stays the same when you switch it off and on.</p> : null}
      <ErrorNotice error={share.error} />
    </section>
  );
}

function Facts({ file }: { file: StoredFile }) {
  return (
    <section className="card">
      <h2>Details</h2>
      <Details
        rows={[
          ['Id', <Id key="id" id={file.id} />],
          ['Owner', <Owner key="owner" of={file} />],
          ['SHA-256', <Id key="hash" id={file.checksum} />],
          ['Changed', <Time key="changed" at={file.updated_at} />],
        ]}
      />
      {Object.keys(file.provider_metadata).length === 0 ? null : (
        <Json value={file.provider_metadata} label="Metadata of the provider" />
      )}
    </section>
  );
}
