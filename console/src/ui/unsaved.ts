import { useEffect } from 'react';
import { ask } from './ask.ts';

const unsaved = new Set<symbol>();

/** While `typed`, leaving the page by a link, the back button or the browser asks first. */
export function useUnsaved(typed: boolean): void {
  useEffect(() => {
    if (!typed) return;
    const mark = Symbol('unsaved');
    unsaved.add(mark);
    return () => {
      unsaved.delete(mark);
    };
  }, [typed]);
}

export const hasUnsaved = () => unsaved.size > 0;

/** Proceeds. If text was typed but not saved, asks the user first. A save that leads to another page does not ask. */
export function leave(proceed: () => void): void {
  if (unsaved.size === 0) proceed();
  else ask({ title: 'Leave without saving?', text: 'What you typed is not saved.', action: 'Leave', proceed });
}

window.addEventListener('beforeunload', (event) => {
  if (unsaved.size > 0) event.preventDefault();
});

/** While a link that the user confirmed is followed. */
let following = false;

// Runs before the router sees the click.
document.addEventListener(
  'click',
  (event) => {
    const link = event.target instanceof Element ? event.target.closest('a[href]') : null;
    const elsewhere = event.metaKey || event.ctrlKey || event.shiftKey || link?.getAttribute('target') === '_blank';
    const stays = following || unsaved.size === 0 || elsewhere || link?.hasAttribute('download');
    if (!(link instanceof HTMLAnchorElement) || stays) return;
    event.preventDefault();
    event.stopPropagation();
    leave(() => {
      following = true;
      link.click();
      following = false;
    });
  },
  true,
);

let returning = false;
let leaving = false;
// This module is loaded before the router listens, so that it can hide a back navigation from the router.
window.addEventListener('popstate', (event) => {
  if (returning || leaving || unsaved.size === 0) {
    returning = false;
    leaving = false;
    return;
  }
  event.stopImmediatePropagation();
  returning = true;
  history.forward();
  leave(() => {
    leaving = true;
    history.back();
  });
});
