import { useState } from 'react';
import { call, type Result } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { Copy } from '../../ui/copy.tsx';
import { FormDialog } from '../../ui/form-dialog.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { useAction, useApi } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import { Shown } from '../../ui/shown.tsx';
import { Time } from '../../ui/time.tsx';
import { ShownOnce } from '../keys/shown-once.tsx';

/** The secret URL that accepts documents for the source, and the secret with which senders sign. */
export function InboundUrl({ source }: { source: string }) {
  const path = { source };
  const url = useApi('GET /api/v1/knowledge_sources/{source}/inbound_url', { path });
  const [asking, setAsking] = useState(false);
  const [secret, setSecret] = useState<string>();
  const isSigned = url.data?.signed === true;
  return (
    <section className="card">
      <h2>Inbound URL</h2>
      <Shown loaded={url}>
        {({ url: address, signed, previous_secret_until }) => (
          <>
            <Address address={address} />
            <p className="hint">
              {signed
                ? 'Each post must be signed as Standard Webhooks.'
                : 'Posts need no signature: anyone with the URL can post.'}{' '}
              {previous_secret_until === undefined ? null : (
                <>
                  The previous secret is valid until <Time at={previous_secret_until} />.
                </>
              )}
            </p>
          </>
        )}
      </Shown>
      <div className="toolbar">
        <ReplaceUrl source={source} onReplaced={url.replace} />
        <Button onClick={() => setAsking(true)}>
          {isSigned ? 'Replace the signing secret' : 'Require signatures'}
        </Button>
        {isSigned ? (
          <DeleteButton
            title="Accept unsigned posts?"
            action="Accept them"
            label="Accept unsigned posts"
            perform={async () => {
              await call('DELETE /api/v1/knowledge_sources/{source}/inbound_url/signing_secret', { path });
              url.reload();
            }}
          >
            Any sender that knows the URL can then add documents.
          </DeleteButton>
        ) : null}
      </div>
      {asking ? (
        <FormDialog
          title={isSigned ? 'Replace the signing secret' : 'Require signatures'}
          lead="Each post must then carry a valid signature of Standard Webhooks."
          submit="Set the secret"
          fields={[
            { name: 'secret', label: 'Secret of the sender', placeholder: 'whsec_…', hint: 'Empty for a new one.' },
          ]}
          onSubmit={async (body) => {
            const made = await call('POST /api/v1/knowledge_sources/{source}/inbound_url/signing_secret', {
              path,
              body,
            });
            setSecret(made.secret);
            url.reload();
          }}
          onClose={() => setAsking(false)}
        />
      ) : null}
      {secret === undefined ? null : (
        <ShownOnce title="The signing secret" secret={secret} onClose={() => setSecret(undefined)} />
      )}
    </section>
  );
}

type Url = Result<'POST /api/v1/knowledge_sources/{source}/inbound_url'>;

/** The secret URL that starts a pull of the source. There is none until someone creates it. */
export function PullUrl({ source }: { source: string }) {
  const path = { source };
  const url = useApi('GET /api/v1/knowledge_sources/{source}/inbound_url', { path });
  const create = useAction(async () => {
    url.replace(await call('POST /api/v1/knowledge_sources/{source}/inbound_url', { path }));
  });
  return (
    <section className="card">
      <h2>Inbound URL</h2>
      <p className="hint">Each post to it starts a pull. Anyone with the URL can post.</p>
      <ErrorNotice error={create.error} />
      {url.error?.status === 404 ? (
        <div>
          <Button busy={create.busy} onClick={() => create.run()}>
            Create the URL
          </Button>
        </div>
      ) : (
        <Shown loaded={url}>
          {({ url: address }) => (
            <>
              <Address address={address} />
              <div className="toolbar">
                <ReplaceUrl source={source} onReplaced={url.replace} />
              </div>
            </>
          )}
        </Shown>
      )}
    </section>
  );
}

function Address({ address }: { address: string }) {
  return (
    <div className="with-button">
      <input readOnly aria-label="Inbound URL" className="code" value={address} />
      <Copy text={address} />
    </div>
  );
}

function ReplaceUrl({ source, onReplaced }: { source: string; onReplaced: (url: Url) => void }) {
  return (
    <DeleteButton
      title="Replace the URL?"
      action="Replace it"
      label="Replace the URL"
      perform={async () => {
        onReplaced(await call('POST /api/v1/knowledge_sources/{source}/inbound_url', { path: { source } }));
      }}
    >
      The old URL stops working immediately.
    </DeleteButton>
  );
}
