import type { ErasureCertificate } from '../../api/generated.ts';
import { Button } from '../../ui/button.tsx';
import { Code } from '../../ui/code.tsx';
import { Copy } from '../../ui/copy.tsx';
import { count } from '../../ui/format.ts';
import { Details } from '../../ui/page.tsx';
import { saveJson } from '../../ui/save.ts';
import { Time } from '../../ui/time.tsx';
import { wordsOf } from './subject.ts';

type Statement = ErasureCertificate['statement'];

const receiverKinds: Record<Statement['receivers'][number]['kind'], string> = {
  model: 'Language model',
  embedder: 'Embedder',
  webhook: 'Webhook',
  traces: 'Collector of traces',
  origin: 'Where it was read from',
};

/** The certificate to read, the file to keep, and how to verify it. */
export function CertificateView({ certificate }: { certificate: ErasureCertificate }) {
  const { statement } = certificate;
  return (
    <>
      <section className="card">
        <h2>What remains</h2>
        <p className="hint">{statement.covers}</p>
        <ul className="remains">
          {statement.remains.map(({ what, where, until, note }) => (
            <li key={what}>
              <p>
                <strong>{wordsOf(what)}</strong> <span className="faint">in the {where}</span>
              </p>
              <p className="until">{until === undefined ? 'no fixed day' : `until ${dayOf(until)}`}</p>
              <p className="note">{note}</p>
            </li>
          ))}
        </ul>
      </section>
      <section className="card">
        <h2>Who had received it</h2>
        {statement.receivers.length === 0 ? (
          <p className="faint">No receiver outside the server is known.</p>
        ) : (
          <ul className="remains">
            {statement.receivers.map((receiver) => (
              <Receiver key={`${receiver.kind} ${receiver.name}`} receiver={receiver} />
            ))}
          </ul>
        )}
      </section>
      <Signature certificate={certificate} />
    </>
  );
}

function Receiver({
  receiver: { kind, name, host, messages, last_at, certain },
}: {
  receiver: Statement['receivers'][number];
}) {
  return (
    <li>
      <p>
        <strong>{receiverKinds[kind]}</strong> <span className="faint">{[name, host].filter(Boolean).join(', ')}</span>
      </p>
      <p className="until">{last_at === undefined ? null : <Time at={last_at} />}</p>
      <p className="note">
        {kind === 'origin'
          ? 'It still has what was read there.'
          : certain
            ? 'It received this.'
            : 'It received data of the app in that time, and may have received this.'}
        {messages === undefined ? null : ` ${count(messages, 'message')}.`}
      </p>
    </li>
  );
}

function Signature({ certificate }: { certificate: ErasureCertificate }) {
  const { statement, key_id, public_key, signature } = certificate;
  const name = `erasure-${statement.erasure.slice(-8)}.json`;
  const onServer = `npx quarry verify --erasures ${name}`;
  const elsewhere = `${onServer} --trust <the public key that you kept>`;
  return (
    <section className="card">
      <div className="toolbar">
        <h2>The signed certificate</h2>
        <Button kind="primary" onClick={() => saveJson(name, certificate)}>
          Download the certificate
        </Button>
      </div>
      <Details
        rows={[
          ['Signed with', <code key="key">{key_id}</code>],
          ['Public key', <code key="public">{public_key}</code>],
          ['Signature', <code key="signature">{signature}</code>],
        ]}
      />
      <h3>Verify it</h3>
      <p>Where the server’s root secret is, this command checks the file without a database:</p>
      <Code text={onServer} label="Verify on the server" />
      <div>
        <Copy text={onServer} label="Copy the command" />
      </div>
      <p>
        Anywhere else, name the public key of the audit log that you kept before, for instance from an exported head of
        the ledger. A key that only this file contains proves nothing.
      </p>
      <Code text={elsewhere} label="Verify elsewhere" />
    </section>
  );
}

/** A day in the form of the page's language. */
function dayOf(day: string): string {
  return new Date(`${day}T00:00:00Z`).toLocaleDateString(undefined, { dateStyle: 'medium', timeZone: 'UTC' });
}
