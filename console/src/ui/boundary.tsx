import { Component, type ReactNode } from 'react';
import { call } from '../api/client.ts';
import { Button } from './button.tsx';
import { Empty } from './page.tsx';
import { hasUnsaved } from './unsaved.ts';

/**
 * Shows a message in place of children that cannot be drawn, such as a part of the console that did not load. What is
 * outside, with the text typed there, stays.
 */
export class Boundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: undefined };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    const isMissing = isMissingPart(error);
    return (
      <div role="alert">
        <Empty
          title={isMissing ? 'This part of the console did not load' : 'This page cannot be shown'}
          action={
            <Button kind="primary" onClick={() => location.reload()}>
              Reload the console
            </Button>
          }
        >
          {isMissing
            ? 'The server cannot be reached, or it was upgraded while this tab was open.'
            : 'The console failed while it drew this page. Nothing on the server has changed.'}
        </Empty>
      </div>
    );
  }
}

const missing = new WeakSet<object>();
const isMissingPart = (error: unknown) => typeof error === 'object' && error !== null && missing.has(error);

const reloadedKey = 'quarry.reloaded-at';
const reloadAgainMs = 60_000;

/**
 * After an upgrade, the files that an open tab would load next do not exist. Reloads once, unless text was typed that
 * is not saved or the server cannot be reached. Otherwise, the nearest Boundary shows the error.
 */
export function reloadAfterUpgrade(): void {
  window.addEventListener('vite:preloadError', (event) => {
    const { payload } = event as Event & { payload: Error };
    missing.add(payload);
    const last = Number(sessionStorage.getItem(reloadedKey) ?? 0);
    if (hasUnsaved() || Date.now() - last < reloadAgainMs) return;
    void call('GET /healthz').then(
      () => {
        if (hasUnsaved()) return;
        sessionStorage.setItem(reloadedKey, String(Date.now()));
        location.reload();
      },
      () => undefined,
    );
  });
}
