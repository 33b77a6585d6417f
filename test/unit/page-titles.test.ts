import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsePage } from '../../src/content/parse/html/page.ts';

/** Short texts below their title, on pages that have more text in comments and teasers of other pages. */

const sentence = (about: string): string =>
  `The ${about} of the harbour was built in the last century, after ten years of quarrels about its place, its cost and its name.`;
const paragraphs = (about: string, count: number): string =>
  Array.from({ length: count }, (_unused, at) => `<p>${sentence(`${about} number ${at + 1}`)}</p>`).join('');

function read(body: string, head = ''): string {
  const html = `<html><head><title>Old harbour closed | The Courier</title>${head}</head><body>${body}</body></html>`;
  return parsePage({ bytes: Buffer.from(html), contentType: 'text/html; charset=utf-8', url: 'about:blank' }).markdown;
}

function includes(markdown: string, wanted: string[], unwanted: string[] = []): void {
  for (const text of wanted) assert.ok(markdown.includes(text), `should hold "${text}":\n${markdown}`);
  for (const text of unwanted) assert.ok(!markdown.includes(text), `should not hold "${text}":\n${markdown}`);
}

const titled = (inner: string): string => `<div id="item"><h1>Old harbour closed</h1>${inner}</div>`;

test('a short news item on a page that otherwise consists of links is read as an article if it follows its title', () => {
  const menu = (about: string): string =>
    Array.from(
      { length: 10 },
      (_unused, part) =>
        `<h3><a href="/${about}/${part}">${about} part ${part}</a></h3><ul>${Array.from(
          { length: 6 },
          (_none, at) =>
            `<li><a href="/${about}/${part}/${at}">${about} ${part} ${at}: what the town says about it</a></li>`,
        ).join('')}</ul>`,
    ).join('');
  const page = (news: string): string =>
    `<form><input name="q"></form><form><input name="mail"></form>${'<img src="/x.gif">'.repeat(50)}
      <div>${menu('news')}</div>${news}<div>${menu('sports')}</div>`;
  includes(read(page(titled(paragraphs('mole', 4)))), ['mole number 1', 'mole number 4'], ['news 3 1', 'sports 5 2']);
  const link = '<p><a href="/mole">The news of the harbour, as the editors of the Courier have collected them</a></p>';
  includes(read(page(titled(link))), ['news 3 1', 'sports 5 2']);
});

test('comments are left out whatever the second part of their name is, and a commentary stays', () => {
  const comments = ['commentbody', 'comment_text', 'commentWrap'].map(
    (name) => `<div class="${name}">${paragraphs(name, 2)}</div>`,
  );
  const own = `<div class="commentary">${paragraphs('pier', 3)}</div>`;
  includes(
    read(titled(`${own}${comments.join('')}`)),
    ['pier number 3'],
    ['commentbody number', 'commentWrap number', 'comment_text number'],
  );
});

test('what follows a line that counts or announces comments is left out, if no name says so, and an article about comments stays', () => {
  const remarks = Array.from(
    { length: 20 },
    (_unused, at) => `<p>${sentence(`remark ${at}`)}</p><p>Posted by: reader ${at}</p>`,
  );
  const lines = [
    '<h3>3 responses to “Old harbour closed”</h3>',
    '<h2>Comments</h2>',
    '<p>Comments (12)</p>',
    '<h3>Leave a reply</h3>',
    '<div>12 комментариев</div>',
  ];
  for (const line of lines)
    includes(
      read(titled(`${paragraphs('pier', 3)}${line}${remarks.join('')}`)),
      ['pier number 3'],
      ['remark 3', 'reader 19'],
    );
  for (const line of ['<p>Comments</p>', '<h2>Comments in code</h2>', '<p><a href="#c">3 comments</a></p>'])
    includes(read(titled(`${paragraphs('pier', 3)}${line}${paragraphs('quay', 9)}`)), [
      'pier number 3',
      'quay number 9',
    ]);
});

test('entries below a heading of other news are left out in Russian, Greek and Polish, too', () => {
  const entries = Array.from(
    { length: 4 },
    (_unused, at) =>
      `<li><a href="/n/${at}">The town and its harbour, part ${at}</a>, reported by a reader of the Courier</li>`,
  );
  for (const heading of ['Похожие статьи', 'Другие новости по этой теме', 'Σχετικά άρθρα', 'Podobne artykuły'])
    includes(
      read(titled(`${paragraphs('pier', 4)}<h3>${heading}</h3><ul>${entries.join('')}</ul>`)),
      ['pier number 4'],
      ['part 2', heading],
    );
});

test('a word that announces other pages at the start of a line is kept within a sentence', () => {
  const keys =
    '<p>The key words "MUST", "<span class="bcp14">RECOMMENDED</span>" and "MAY" are to be read as they stand.</p>';
  const other = '<p>Read in its place:<br><b>Recommended</b><br><a href="/o">Another harbour</a></p>';
  const markdown = read(
    `<article><h1>Old harbour closed</h1>${paragraphs('pier', 4)}${keys}${paragraphs('quay', 4)}${other}</article>`,
  );
  includes(markdown, ['"MUST", "RECOMMENDED" and "MAY"'], ['Recommended']);
});

test('a text is kept in a box on which readers may comment, and comments are not', () => {
  const box = `<div class="commentOnSelection"><div>${paragraphs('pier', 12)}</div></div>`;
  includes(
    read(`${titled(box)}<div class="commentList">${paragraphs('remark', 20)}</div>`),
    ['pier number 7'],
    ['remark number 1'],
  );
});
