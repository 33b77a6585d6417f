import { useEffect } from 'react';

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

/** Asks the user if text was typed but not saved. A save that leads to another page does not ask. */
export function mayLeave(): boolean {
  return unsaved.size === 0 || window.confirm('Leave? What you typed is not saved.');
}

window.addEventListener('beforeunload', (event) => {
  if (unsaved.size > 0) event.preventDefault();
});

// Runs before the router sees the click.
document.addEventListener(
  'click',
  (event) => {
    const link = event.target instanceof Element ? event.target.closest('a[href]') : null;
    const elsewhere = event.metaKey || event.ctrlKey || event.shiftKey || link?.getAttribute('target') === '_blank';
    if (!link || elsewhere || link.hasAttribute('download') || mayLeave()) return;
    event.preventDefault();
    event.stopPropagation();
  },
  true,
);

let returning = false;
// This module is loaded before the router listens, so that it can hide a back navigation from the router.
window.addEventListener('popstate', (event) => {
  if (returning || mayLeave()) {
    returning = false;
    return;
  }
  event.stopImmediatePropagation();
  returning = true;
  history.forward();
});
