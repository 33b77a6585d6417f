import * as Tooltip from '@radix-ui/react-tooltip';
import { QueryClientProvider } from '@tanstack/react-query';
import { lazy, StrictMode, Suspense } from 'react';
import { createRoot } from 'react-dom/client';
import './ui/nonce.ts';
import './ui/unsaved.ts';
import './ui/tokens.css';
import './ui/base.css';
import './ui/layout.css';
import { App } from './app.tsx';
import { isConnectPage, returnToConnectPage } from './pages/connect/address.ts';
import { SignIn } from './pages/sign-in/sign-in-page.tsx';
import { SessionProvider } from './session.tsx';
import { Boundary, reloadAfterUpgrade } from './ui/boundary.tsx';
import { queries } from './ui/query.ts';
import { Questions } from './ui/questions.tsx';
import { Toasts } from './ui/toast.tsx';

/** The token of a link to an approval, whose page needs no session. */
const linked = /^\/console\/answer\/([\w-]+)$/.exec(window.location.pathname)?.[1];
const ConnectPage = lazy(async () => ({ default: (await import('./pages/connect/connect-page.tsx')).ConnectPage }));
const LinkedPage = lazy(async () => ({ default: (await import('./pages/approvals/linked-page.tsx')).LinkedPage }));

reloadAfterUpgrade();
const root = document.getElementById('root');
if (root && !returnToConnectPage())
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <Tooltip.Provider delayDuration={400}>
          {linked === undefined && !isConnectPage ? (
            <SessionProvider signIn={(onSignedIn, notice) => <SignIn onSignedIn={onSignedIn} notice={notice} />}>
              <Boundary>
                <App />
              </Boundary>
            </SessionProvider>
          ) : (
            <Suspense>{linked === undefined ? <ConnectPage /> : <LinkedPage token={linked} />}</Suspense>
          )}
          <Questions />
          <Toasts />
        </Tooltip.Provider>
      </QueryClientProvider>
    </StrictMode>,
  );
