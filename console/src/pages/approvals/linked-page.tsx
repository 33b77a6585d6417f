import { call } from '../../api/client.ts';
import { PageHead } from '../../ui/page.tsx';
import { useApi } from '../../ui/query.ts';
import { Shown } from '../../ui/shown.tsx';
import { Time } from '../../ui/time.tsx';
import './linked.css';
import { AnswerForm } from './answer-form.tsx';

const said = {
  answered: 'This question has been answered. Thank you.',
  expired: 'This question has expired.',
  cancelled: 'This question is no longer asked.',
};

/** The question of a link, for a person without an account. It needs no session. */
export function LinkedPage({ token }: { token: string }) {
  const path = { token };
  const linked = useApi('GET /api/v1/approval_links/{token}', { path });
  const send = async (data: unknown) =>
    linked.replace(await call('POST /api/v1/approval_links/{token}', { path, body: { data } }));
  return (
    <main className="page linked">
      <Shown loaded={linked}>
        {({ question, status, form, sent_to, expires_at }) => (
          <section className="card" aria-label={question}>
            <PageHead title={question} lead={`Sent to ${sent_to}`} />
            {status === 'waiting' ? (
              <>
                {expires_at === undefined ? null : (
                  <p className="faint">
                    Expires <Time at={expires_at} />
                  </p>
                )}
                <AnswerForm form={form} send={send} />
              </>
            ) : (
              <p role="status">{said[status]}</p>
            )}
          </section>
        )}
      </Shown>
    </main>
  );
}
