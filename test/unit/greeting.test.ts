import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatGreeting, maySignInByLink } from '../../src/cli/operate/greeting.ts';
import { signInUrl } from '../../src/console/sign-in-links.ts';

const here = { isTerminal: true, host: '127.0.0.1', baseUrl: 'http://127.0.0.1:8080' };

test('a sign-in link is created only for a terminal on this machine', () => {
  assert.equal(maySignInByLink(here), true);
  assert.equal(maySignInByLink({ ...here, host: '::1', baseUrl: 'http://[::1]:8080' }), true);
  assert.equal(maySignInByLink({ ...here, host: 'localhost', baseUrl: 'http://localhost:8080' }), true);
  assert.equal(maySignInByLink({ ...here, isTerminal: false }), false);
  assert.equal(maySignInByLink({ ...here, host: '0.0.0.0' }), false);
  assert.equal(maySignInByLink({ ...here, host: '127.example.com' }), false);
  assert.equal(maySignInByLink({ ...here, baseUrl: 'https://quarry.example.com' }), false);
});

test('the code is in the part of the address that browsers do not send', () => {
  const shown = { url: 'http://127.0.0.1:8080', baseUrl: 'http://127.0.0.1:8080', credentials: undefined };
  const text = formatGreeting({ ...shown, signInUrl: signInUrl(shown.baseUrl, 'csl_x') });
  const [, link = ''] = /Sign in +(\S+)/.exec(text) ?? [];
  const { pathname, search, hash } = new URL(link);
  assert.deepEqual([pathname, search, hash], ['/console', '', '#sign-in=csl_x']);
  assert.doesNotMatch(formatGreeting({ ...shown, signInUrl: undefined }), /Sign in/);
});
