import { jsx as createElement, jsxs as createWithChildren, Fragment } from 'react/jsx-runtime';
import { withVisibleTurns } from './direction.ts';

/*
 * The build uses this instead of React's own: every text that the console shows, in elements, tips and labels, has the
 * characters that turn text as codes. Names that strangers chose are on every page, and one that a page forgot to
 * write so could pose as another. Values of inputs stay as they are.
 */
export { Fragment, jsx, jsxs };

const jsx: typeof createElement = (type, props, key) => createElement(type, shownProps(type, props), key);

const jsxs: typeof createWithChildren = (type, props, key) => createWithChildren(type, shownProps(type, props), key);

function shownProps(type: unknown, props: unknown): unknown {
  const given = props as Record<string, unknown>;
  // Without a value of its own, the text of an option is what a form sends.
  if (type === 'option' && given.value === undefined) return props;
  let changed: Record<string, unknown> | undefined;
  // Components of libraries create their elements themselves, from the children that they are given.
  for (const name of typeof type === 'string' ? shownNames : ['children']) {
    const shown = shownValue(given[name]);
    if (shown !== given[name]) changed = { ...(changed ?? given), [name]: shown };
  }
  return changed ?? props;
}

const shownNames = ['children', 'title', 'aria-label', 'aria-description', 'alt', 'placeholder', 'data-label'];

/** Returns the value itself if there is nothing to change, so that React sees no other one. */
function shownValue(value: unknown): unknown {
  if (typeof value === 'string') return withVisibleTurns(value);
  if (!Array.isArray(value)) return value;
  const shown = value.map(shownValue);
  return shown.some((one, at) => one !== value[at]) ? shown : value;
}
