import { useEffect, useState } from 'react';
import { call, type Item } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { useAction } from '../../ui/query.ts';

type Issuer = Item<'GET /console/oidc/issuers'>;

/** A button for each issuer at which users of the app with this key can sign in. */
export function IssuerButtons({ publishableKey }: { publishableKey: string }) {
  const [issuers, setIssuers] = useState<Issuer[]>([]);
  useEffect(() => {
    const stop = new AbortController();
    setIssuers([]);
    if (publishableKey.startsWith('pk_'))
      call('GET /console/oidc/issuers', { query: { publishable_key: publishableKey }, signal: stop.signal })
        .then(({ data }) => setIssuers(data))
        // A key that is still being typed has no issuers.
        .catch(() => {});
    return () => stop.abort();
  }, [publishableKey]);
  const start = useAction(async (issuer: string) => {
    const body = { publishable_key: publishableKey, identity_issuer: issuer };
    const { url } = await call('POST /console/oidc/start', { body });
    location.assign(url);
  });
  if (issuers.length === 0) return null;
  return (
    <div className="issuers">
      {issuers.map(({ id, issuer }) => (
        <Button key={id} busy={start.busy} onClick={() => start.run(id)}>
          Continue with {new URL(issuer).host}
        </Button>
      ))}
      {start.error === undefined ? null : (
        <p className="notice error" role="alert">
          {start.error.message}
        </p>
      )}
    </div>
  );
}
