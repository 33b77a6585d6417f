import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isUnsure } from '../../src/content/parse/html/main/content.ts';
import { featureNames, segmentFeatures } from '../../src/content/parse/html/main/segment-features.ts';
import { chooseSegments, promisedScore, scoreSegments } from '../../src/content/parse/html/main/segment-scores.ts';
import { copySegments, findSegments } from '../../src/content/parse/html/main/segments.ts';
import { findFirst, type HtmlElement, parseHtml, textOf } from '../../src/content/parse/html/tree.ts';

function bodyOf(html: string): HtmlElement {
  const body = findFirst(parseHtml(`<html><body>${html}</body></html>`).root, 'body');
  assert.ok(body);
  return body;
}

const page = `<h1>Oak <em>chair</em></h1>loose words <a href="/x">and a link</a><div><p>First</p><p><img src="/a.png"></p></div>
  <a href="/card"><div>Card title</div><p>Card text</p></a><pre>a
  b</pre><table><tr><th>Height</th><td>90 cm</td></tr><tr><th>Width</th><td>40 cm</td></tr></table>
  <button>Show the guarantee</button><select><option>Red</option></select>`;

test('each text of a page is in one segment, rows of tables and preformatted texts whole', () => {
  const texts = findSegments(bodyOf(page)).map(({ text }) => text);
  assert.deepEqual(texts, [
    'Oak chair',
    'loose words and a link',
    'First',
    '',
    'Card title',
    'Card text',
    'a b',
    'Height 90 cm',
    'Width 40 cm',
    'Show the guarantee',
  ]);
});

test('a copy contains the chosen segments in the elements around them, and nothing else', () => {
  const body = bodyOf(page);
  const chosen = findSegments(body).filter(({ text }) => /^(?:First|Card text|Width|Show)/.test(text));
  const copy = copySegments(body, new Set(chosen.flatMap(({ nodes }) => nodes)));
  assert.equal(textOf(copy), 'First Card text Width 40 cm Show the guarantee');
  assert.equal(findFirst(copy, 'table')?.children.length, 1);
  assert.equal(findFirst(copy, 'button'), undefined, 'a button would not be written');
  assert.ok(findFirst(body, 'button'), 'the page itself is unchanged');
});

test('every segment has every feature, also in a page without any hint', () => {
  const types = { article: 1, documentation: 0, forum: 0, service: 0, collection: 0, listing: 0, product: 0 };
  for (const html of [page, '<p>one</p>', 'text only', '<table><tr><td>a</td><td>b</td></tr></table>']) {
    const body = bodyOf(html);
    const segments = findSegments(body);
    const rows = segmentFeatures({ body, segments, title: undefined, types, kept: new Set() });
    assert.equal(rows.length, segments.length);
    for (const row of rows) {
      assert.equal(row.length, featureNames.length);
      assert.ok(row.every(Number.isFinite));
    }
  }
});

test('segments are chosen for the F1 of the whole: long sure ones, and unsure ones while they help', () => {
  assert.deepEqual(chooseSegments([0.9, 0.9, 0.1, 0.6], [100, 80, 50, 20]), [true, true, false, true]);
  // Where nothing is sure, less certain text is better than none.
  assert.deepEqual(chooseSegments([0.3, 0.28, 0.01], [50, 50, 500]), [true, true, false]);
  assert.deepEqual(chooseSegments([], []), []);
});

test('the trees are asked about an article that is little of its page, unless an article element has the title', () => {
  const text = (words: number): string => `<p>${'word and '.repeat(words)}</p>`;
  const named = bodyOf(`<article><h1>The old harbour</h1>${text(60)}</article>${text(200)}`);
  const unnamed = bodyOf(`<div><h1>The old harbour</h1>${text(60)}</div>${text(200)}`);
  const unsure = (body: HtmlElement, part: number): boolean => {
    const kept = body.children[part];
    assert.ok(kept?.kind === 'element');
    return isUnsure('article', body, kept, 'The old harbour');
  };
  assert.equal(unsure(unnamed, 0), true);
  assert.equal(unsure(unnamed, 1), false, 'it is most of the page');
  assert.equal(unsure(named, 0), false, 'the page names its article');
});

test('a choice of segments promises the F1 that it would have if the probabilities were right', () => {
  assert.equal(promisedScore([1, 0], [10, 10], [true, false]), 1);
  assert.equal(promisedScore([1, 0], [10, 10], [true, true]), 2 / 3);
  assert.equal(promisedScore([0.5, 0.5], [10, 30], [true, false]), 1 / 3);
  assert.equal(promisedScore([], [], []), 0);
});

test('trees are walked by their bounds, and their values add up', () => {
  const tree = [
    [0, 1],
    [2, 5],
    [1, -2, -1, -3],
    [-1, 3, 2],
  ] as const;
  const odds = (points: number): number => 1 / (1 + Math.exp(-points));
  assert.deepEqual(
    scoreSegments(
      [
        [1, 5],
        [2, 6],
        [3, 0],
      ],
      [tree, tree],
    ),
    [odds(-2), odds(4), odds(6)],
  );
});
