import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Router } from 'wouter';
import { App } from './app.tsx';
import { SignIn } from './pages/sign-in/sign-in-page.tsx';
import { SessionProvider } from './session.tsx';

const root = document.getElementById('root');
if (root)
  createRoot(root).render(
    <StrictMode>
      <Router base="/console">
        <SessionProvider signIn={(onSignedIn, notice) => <SignIn onSignedIn={onSignedIn} notice={notice} />}>
          <App />
        </SessionProvider>
      </Router>
    </StrictMode>,
  );
