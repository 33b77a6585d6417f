import assert from 'node:assert/strict';
import { Session } from 'node:inspector/promises';
import { after, before, test } from 'node:test';
import { parsePage } from '../../src/content/parse/html/page.ts';

/*
 * What a page costs, in steps: how often V8 enters the functions and blocks of the reader of pages. Unlike time, it is
 * the same on every machine.
 */

const session = new Session();
before(async () => {
  session.connect();
  await session.post('Profiler.enable');
});
after(() => session.disconnect());

async function stepsOf(html: string): Promise<number> {
  const bytes = Buffer.from(`<html><body>${html}</body></html>`);
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  parsePage({ bytes, contentType: 'text/html', url: 'http://example.test/' });
  const { result } = await session.post('Profiler.takePreciseCoverage');
  await session.post('Profiler.stopPreciseCoverage');
  const own = result.filter(({ url }) => url.includes('/content/parse/html/'));
  const ranges = own.flatMap(({ functions }) => functions.flatMap((each) => each.ranges));
  return ranges.reduce((sum, { count }) => sum + count, 0);
}

const shapes: Record<string, (elements: number) => string> = {
  'boxes with text': (n) => '<div>Some words of text here, and more.</div>'.repeat(n),
  'short links': (n) => Array.from({ length: n }, (_unused, at) => `<a href="/p${at}">link</a>`).join(''),
  'links that are calls': (n) => '<div>Text.</div><a href="/x">Learn more</a>'.repeat(n / 2),
  headings: (n) => '<h2>a</h2>'.repeat(n),
  'hidden answers': (n) => '<button>Why?</button><div hidden>Because it is so.</div>'.repeat(n / 2),
  rows: (n) => `<table>${'<tr><td>1</td></tr>'.repeat(n / 2)}</table>`,
  'rows of boxes': (n) =>
    `<div role="table">${'<div role="row"><div role="cell">1</div><div role="cell">2</div></div>'.repeat(n / 3)}</div>`,
  'tables of boxes within each other': (n) =>
    `${'<div role="table"><div role="row"><div role="cell">'.repeat(60)}a${'</div></div></div>'.repeat(60)}`.repeat(
      n / 180,
    ),
  comments: (n) => '<article class="comment"><b class="author">x</b><p>word word</p></article>'.repeat(n / 3),
  'tables of contents within each other': (n) =>
    `${'<div class="toc">'.repeat(60)}${'<a href="#a">a</a>'.repeat(60)}${'</div>'.repeat(60)}`.repeat(n / 120),
  'equations and notes within sentences': (n) =>
    '<p>A<span class="ltx_role_footnote"><sup>1</sup><i class="ltx_note_content">b</i></span></p><table class="ltx_eqn_table"><tr><td><math></math></td></tr></table>'.repeat(
      n / 8,
    ),
  'posts with times': (n) =>
    `<div class="post" id="post-1">${'<p class="date">edited <time>Jan 3 2030 10:15</time></p>'.repeat(n / 4)}</div>`.repeat(
      2,
    ),
  'deep boxes': (n) => `${'<div>'.repeat(200)}a${'</div>'.repeat(200)}`.repeat(n / 200),
};

for (const [name, make] of Object.entries(shapes))
  test(`a page of ${name} costs at most in proportion to its length`, async () => {
    const [some, more] = [await stepsOf(make(1_800)), await stepsOf(make(7_200))];
    assert.ok(more < 5 * some, `${some} steps, and ${more} for four times as many elements`);
  });
