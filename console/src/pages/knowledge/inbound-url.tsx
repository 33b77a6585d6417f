import { useState } from 'react';
import { call } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { Copy } from '../../ui/copy.tsx';
import { FormDialog } from '../../ui/form-dialog.tsx';
import { useApi } from '../../ui/query.ts';
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
            <div className="with-button">
              <input readOnly aria-label="Inbound URL" className="code" value={address} />
              <Copy text={address} />
            </div>
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
        <DeleteButton
          title="Replace the URL?"
          action="Replace it"
          label="Replace the URL"
          perform={async () => {
            url.replace(await call('POST /api/v1/knowledge_sources/{source}/inbound_url', { path }));
          }}
        >
          The old URL stops working immediately.
        </DeleteButton>
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
