import assert from 'node:assert/strict';
import { test } from 'node:test';
import { namesOf, readSources, type Source } from '../support/source.ts';

/* A response may have ended before anything listens: then `close` never comes, and what waits for it is never freed. */

const known = new Set([
  'src/http/closed.ts',
  // Of the renderer's proxy, which has just looked whether its response is destroyed.
  'src/content/browser/forward-proxy.ts',
]);
const waits = ({ text }: Source) => /\b(?:response|reply\.raw)\s*\.(?:on|once)\(\s*'close'/.test(text);

test('only whenClosed waits for the end of a response', () => {
  const wrong = readSources('src').filter((source) => waits(source) && !known.has(source.name));
  assert.deepEqual(namesOf(wrong), []);

  assert.ok(waits({ name: 'src/a.ts', text: "reply.raw.once('close', end);" }));
  assert.ok(!waits({ name: 'src/a.ts', text: 'whenClosed(reply.raw, end);' }));
});
