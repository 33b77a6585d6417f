import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ParsedPage, parsePage } from '../../src/content/parse/html/page.ts';

/** Threads as forum software writes them: every post under its author, and nothing else as a post. */

const says = (about: string): string =>
  `My ${about} is moored at the old pier, and every winter its ropes freeze to the wood, whatever I put between them.`;

type Expected = { posts: [author: string, text: string][]; unwanted?: string[] };

function checkThread(head: string, body: string, { posts, unwanted = [] }: Expected): void {
  const { markdown, pageType } = readThread(head, body);
  assert.equal(pageType, 'forum');
  const found = markdown.split(/^### /m).slice(1);
  assert.equal(found.length, posts.length, markdown);
  for (const [at, [author, text]] of posts.entries()) {
    assert.match(found[at] ?? '', new RegExp(`^${author}(?:,|\\n)`), markdown);
    assert.ok(found[at]?.includes(text), `${author}: ${text}\n${markdown}`);
  }
  for (const text of unwanted) assert.ok(!markdown.includes(text), `${text}\n${markdown}`);
}

function readThread(head: string, body: string): ParsedPage {
  const html = `<html><head><title>Frozen ropes at the pier</title>${head}</head><body>${body}</body></html>`;
  return parsePage({
    bytes: Buffer.from(html),
    contentType: 'text/html; charset=utf-8',
    url: 'https://forum.site.test/threads/frozen-ropes-at-the-pier.4711/',
  });
}

const boats = ['dinghy', 'barge', 'ketch', 'yawl'];
const names = ['Alma', 'Bert', 'Cora', 'Dirk'];
const posts = boats.map((boat, at): [string, string] => [names[at] ?? '', says(boat)]);

test('questions and answers are posts, and the remarks below them are not, however long they are', () => {
  const remarks = (about: string): string =>
    `<ul class="comments-list">${[1, 2, 3]
      .map(
        (n) =>
          `<li id="comment-${about.length}00${n}" class="comment js-comment" data-comment-id="${n}"><div class="comment-text"><span class="comment-copy">Remark ${n} on the ${about}. ${says('canoe')} ${says('raft')}</span> – <a class="comment-user">Eve</a></div></li>`,
      )
      .join('')}</ul>`;
  const post = (kind: string, [author, text]: [string, string], id: number): string =>
    `<div id="${kind}-${id}" class="${kind} js-${kind}" data-${kind}id="${id}"><div class="votecell">12</div><div class="${kind === 'question' ? 'postcell' : 'answercell'}">
      <div class="s-prose js-post-body" itemprop="text"><p>${text}</p></div>
      <div class="user-info"><div class="user-action-time">answered <span class="relativetime">Jan 3 at 10:15</span></div><div class="user-details" itemprop="author"><a href="/users/1">${author}</a><span class="badge2">7</span></div></div></div>
      <div class="comments js-comments-container">${remarks(author)}</div></div>`;
  checkThread(
    '<meta property="og:type" content="website">',
    `<div itemscope itemtype="https://schema.org/QAPage"><div id="mainbar" itemprop="mainEntity" itemscope itemtype="https://schema.org/Question"><h1 itemprop="name">Frozen ropes at the pier</h1>${posts
      .map((one, at) => post(at === 0 ? 'question' : 'answer', one, 1000 + at))
      .join('')}</div></div>`,
    { posts, unwanted: ['Remark 2'] },
  );
});

test('every comment of a Vanilla discussion is a post', () => {
  const item = ([author, text]: [string, string], at: number): string => {
    const kind = at === 0 ? 'Discussion' : 'Comment';
    return `<${at === 0 ? 'div' : 'li'} class="Item Item${kind} ${at % 2 ? 'Alt' : ''} Role_Member" id="${kind}_${4000 + at}"><div class="${kind}"><div class="Item-Header ${kind}Header"><div class="AuthorWrap">
      <span class="Author"><a title="${author}" href="/profile/${author}" class="PhotoWrap"><img src="p.png" alt=""></a><a href="/profile/${author}" class="Username">${author}</a></span>
      <span class="AuthorInfo"><span class="MItem RoleTitle">Member</span><span class="MItem PostCount">Posts: 312</span></span></div>
      <div class="Meta"><span class="MItem DateCreated"><a href="#"><time datetime="2024-03-0${at + 1}">March ${at + 1}</time></a></span></div></div>
      <div class="Item-BodyWrap"><div class="Item-Body"><div class="Message userContent">${text}</div><div class="Reactions">Like 3</div></div></div></div></${at === 0 ? 'div' : 'li'}>`;
  };
  checkThread(
    '<meta name="generator" content="Vanilla">',
    `<div class="MessageList Discussion">${item(posts[0] ?? ['', ''], 0)}</div><div class="CommentsWrap"><ul class="MessageList DataList Comments">${posts
      .slice(1)
      .map((one, at) => item(one, at + 1))
      .join('')}</ul></div>`,
    { posts, unwanted: ['Member', 'Like 3'] },
  );
});

test('every reply of a bbPress topic is a post', () => {
  const reply = ([author, text]: [string, string], at: number): string =>
    `<div id="post-${500 + at}" class="bbp-reply-header"><div class="bbp-meta"><span class="bbp-reply-post-date">March ${at + 1}, 2024 at 9:00 am</span><a href="#" class="bbp-reply-permalink">#${500 + at}</a></div></div>
    <div class="${at % 2 ? 'even' : 'odd'} bbp-parent-forum-7 bbp-parent-topic-500 bbp-reply-position-${at + 1} user-id-${at} post-${500 + at} reply type-reply status-publish hentry">
      <div class="bbp-reply-author"><a href="/users/${at}" class="bbp-author-link"><span class="bbp-author-avatar"><img src="p.png" alt=""></span><span class="bbp-author-name">${author}</span></a><div class="bbp-author-role">Participant</div></div>
      <div class="bbp-reply-content"><p>${text}</p></div></div>`;
  checkThread(
    '<meta name="generator" content="WordPress 6.4">',
    `<div id="bbpress-forums"><ul id="topic-500-replies" class="forums bbp-replies"><li class="bbp-header"><div class="bbp-reply-author">Author</div><div class="bbp-reply-content">Posts</div></li><li class="bbp-body">${posts
      .map(reply)
      .join('')}</li></ul><p>Log in to reply</p></div>`,
    { posts, unwanted: ['Participant'] },
  );
});

test('the author of a XenForo post is the member, not the badge beside the name', () => {
  const message = ([author, text]: [string, string], at: number): string =>
    `<article class="message message--post js-post js-inlineModContainer" id="js-post-${900 + at}" data-content="post-${900 + at}"><div class="message-inner"><div class="message-cell message-cell--user"><section class="message-user">
      <div class="message-avatar"><a href="/members/${at}" class="avatar">${author[0]}</a></div>
      <div class="message-userDetails"><em class="userBanner userBanner--staff message-userBanner author-badge"><strong>Staff member</strong></em><h4 class="message-name"><a href="/members/${at}" class="username"><span class="username--style3">${author}</span></a></h4><h5 class="userTitle message-userTitle">Old salt</h5></div></section></div>
      <div class="message-cell message-cell--main"><header class="message-attribution"><ul class="message-attribution-main"><li class="u-concealed"><a href="#"><time class="u-dt">Mar ${at + 1}, 2024</time></a></li></ul></header>
      <div class="message-content"><div class="message-userContent"><article class="message-body"><div class="bbWrapper">${text}</div></article><div data-role="memberSignature"><p>Fair winds to all</p></div></div></div></div></div></article>`;
  checkThread(
    '<meta property="og:type" content="website">',
    `<div class="block-body js-replyNewMessageContainer">${posts.map(message).join('')}</div>`,
    {
      posts,
      unwanted: ['Staff member', 'Old salt', 'Fair winds'],
    },
  );
});

/** Comments nested below a first post, all in one box that is named as a post. */
function commented(opening: string, url: string, profileOf: (name: string) => string): ReturnType<typeof parsePage> {
  const comment = ([author, text]: [string, string], at: number, inner: string): string =>
    `<li class="comment plain"><article id="comment-${7100 + at}" class="details comment-node"><div class="row small"><a class="username" href="${profileOf(author)}"><span>${author}</span></a> <span class="moment">${at + 2} days ago</span></div>
      <div class="comment-content"><div class="md"><p>${text}</p></div></div><div class="row"><button>Reply</button></div></article>${inner === '' ? '' : `<ul class="comments">${inner}</ul>`}</li>`;
  const nested = posts.reduceRight((inner, post, at) => comment(post, at, inner), '');
  const html = `<html><head><title>Frozen ropes at the pier</title><meta property="og:type" content="article"></head><body>
    <nav><a href="/">Home</a><a href="/communities">Communities</a></nav>
    <main><div class="post container"><div class="post-listing"><h1>Frozen ropes at the pier</h1><article class="card"><div class="md"><p>${opening}</p></div></article></div>
      <ul class="comments">${nested}</ul></div></main></body></html>`;
  return parsePage({ bytes: Buffer.from(html), contentType: 'text/html', url });
}

test('the box around all comments is the first post, and each comment in it is a post of its own', () => {
  const opening = `What do you put between ropes and wood? ${says('rope')} ${says('boat')}`;
  const { markdown, pageType } = commented(
    opening,
    'https://forum.site.test/threads/ropes.4711/',
    (name) => `/u/${name}`,
  );
  assert.equal(pageType, 'forum', markdown);
  for (const text of [opening, ...posts.map(([, said]) => said)])
    assert.equal(markdown.split(text).length, 2, `${text}\n${markdown}`);
  for (const [author] of posts) assert.match(markdown, new RegExp(`^### ${author}`, 'm'));
});

test('the author of a post is the member whose page it links to, where nothing else names one, and nobody whom its text names', () => {
  const paths = ['/u/alma', 'member.php?u=12', '/~cora', '/forum/index.php?action=profile;u=4'];
  const post = ([author, text]: [string, string], at: number): string =>
    `<div class="post" id="post-${500 + at}"><div class="head"><a href="${paths[at]}"><img src="p.png" alt=""></a><a href="/t/4711#${at}">#${at}</a> <a href="${paths[at]}">${author}</a></div>
      <div class="post-body"><p>${text}</p><p><a href="/u/eve">Eve</a> says the same.</p></div></div>`;
  checkThread('', `<div class="thread">${posts.map(post).join('')}</div>`, { posts });
  const nameless = ([, text]: [string, string], at: number): string =>
    `<div class="post" id="post-${500 + at}"><time>May ${at + 1}</time><div class="post-body"><p><a href="/u/eve">Eve</a>: ${text}</p></div></div>`;
  checkThread('', `<div class="thread">${posts.map(nameless).join('')}</div>`, {
    posts: posts.map(([, text], at) => [`May ${at + 1}`, text]),
  });
});

test('a post is by who wrote it and not by who edited it, at the time when it was written, and an accepted answer says so', () => {
  const person = (kind: string, when: string, name: string, owner: boolean): string =>
    `<div class="post-signature${owner ? ' owner' : ''}"><div class="user-info"><div class="user-action-time"><a href="/posts/7/revisions">${kind} <span class="relativetime">${when}</span></a></div>
      <div class="user-details"${owner ? ' itemprop="author" itemscope itemtype="http://schema.org/Person"' : ''}><a href="/users/7/${name}">${name}</a><div class="-flair"><span class="reputation-score">1,234</span></div></div></div></div>`;
  const post = (kind: 'question' | 'answer', [author, text]: [string, string], id: number): string =>
    `<div id="${kind}-${id}" class="${kind}${id === 1002 ? ' accepted-answer' : ''}"${kind === 'answer' ? ` itemprop="${id === 1002 ? 'accepted' : 'suggested'}Answer" itemscope itemtype="https://schema.org/Answer"` : ''}>
      <div class="s-prose js-post-body" itemprop="text"><p>${text} <img class="emoji" src="/e/1.png" alt=":wink:"><img src="/images/smilies/icon_sad.gif" alt=":("></p></div>
      ${person('edited', 'Feb 9 at 8:11', 'Zoe', false)}${person(kind === 'question' ? 'asked' : 'answered', 'Jan 3 at 10:15', author, true)}</div>`;
  const body = `<div itemscope itemtype="https://schema.org/QAPage"><div itemprop="mainEntity" itemscope itemtype="https://schema.org/Question"><h1 itemprop="name">Frozen ropes at the pier</h1>${posts
    .map((one, at) => post(at === 0 ? 'question' : 'answer', one, 1000 + at))
    .join('')}</div></div>`;
  const head = '<meta property="og:type" content="website">';
  checkThread(head, body, { posts, unwanted: ['Zoe', 'Feb 9', '1,234', '](https://forum.site.test/e/'] });
  const { markdown, structured } = readThread(head, body);
  assert.match(markdown, /^### Cora, Jan 3 at 10:15, accepted answer$/m);
  assert.equal(markdown.match(/accepted answer/g)?.length, 1);
  assert.ok(markdown.includes('put between them. :wink::('), markdown);
  assert.equal(structured.author, 'Alma');
});

test('every comment on an issue is a post, and so is its description, under its author and time', () => {
  const box = (kind: string, [author, text]: [string, string], id: number): string =>
    `<div class="react-issue-${kind}"><div class="IssueCommentViewer-module__Content--kTuSn"><div id="issue${kind}-${id}" class="ActivityHeader-module__Container--NuqfC">
      <h3 class="sr-only">${author} commented <relative-time datetime="2030-01-03T10:15:00Z">on Jan 3, 2030</relative-time></h3>
      <div class="ActivityHeader-module__TitleContainer--jjcek"><a class="ActivityHeader-module__AuthorLink--iofTU" href="/${author}">${author}</a></div><span><a href="#c"><relative-time datetime="2030-01-03T10:15:00Z">on Jan 3, 2030</relative-time></a></span><span>Contributor</span></div>
      <div class="markdown-body" data-testid="markdown-body"><p>${text}</p><div itemprop="text" class="blob-wrapper"><table><tr><td id="L7" data-line-number="7"></td><td class="blob-code">tie(rope)</td></tr></table></div></div></div></div>`;
  const html = `<html><head><title>Frozen ropes at the pier · Issue #7</title></head><body><main><h1>Frozen ropes at the pier</h1>${posts
    .map((one, at) => box(at === 0 ? 'body' : 'comment', one, 290811 + at))
    .join('')}</main></body></html>`;
  const { markdown, pageType } = parsePage({
    bytes: Buffer.from(html),
    contentType: 'text/html; charset=utf-8',
    url: 'https://code.site.test/harbour/ropes/issues/7',
  });
  assert.equal(pageType, 'forum');
  for (const [author, text] of posts)
    assert.ok(markdown.includes(`### ${author}, on Jan 3, 2030\n\n${text}`), markdown);
});

test('a post has the date beside it, as phpBB and vBulletin write it without a name, and none from its text', () => {
  const text = (at: number): string =>
    `<p>${says(boats[at] ?? '').repeat(5)} It was built on January 2, 1950 at 10:15.</p>`;
  const layouts = [
    (name: string, at: number) =>
      `<div id="p47${at}1" class="post bg2"><div class="inner"><div class="postbody"><h3><a href="#p">Re: Ropes</a></h3><p class="author">by <strong><a href="./memberlist.php?mode=viewprofile&amp;u=${at}">${name}</a></strong> &raquo; Fri Jan 04, 2030 3:04 pm</p><div class="content">${text(at)}</div></div></div></div>`,
    (name: string, at: number) =>
      `<div id="p47${at}2" class="post bg1"><dl class="postprofile"><dt><a href="./memberlist.php?mode=viewprofile&amp;u=${at}">${name}</a></dt><dd><strong>Joined:</strong> Wed Jan 21, 2015 12:12 pm</dd></dl><div class="postbody"><p class="author">by <strong><a href="./memberlist.php?mode=viewprofile&amp;u=${at}">${name}</a></strong> &raquo; Fri Jan 04, 2030 3:04 pm</p><div class="content">${at === 0 ? says('dory') : text(at)}</div></div></div>`,
    (name: string, at: number) =>
      `<div class="b-post" id="p4711${at}"><div class="author"><a href="/member/${at}">${name}</a></div><div class="b-post__timestamp"><span class="date">04-01-2030, <span class="time">03:04 PM</span></span></div><div class="b-post__content"><div class="post-text">${text(at)}</div></div></div>`,
    (name: string, at: number) =>
      `<table id="post4711${at}"><tr><td class="thead"><div class="normal">04-01-2030, 03:04 PM</div></td></tr><tr><td class="alt2"><a class="bigusername" href="member.php?u=${at}">${name}</a></td></tr><tr><td class="alt1" id="td_post_4711${at}"><div id="post_message_4711${at}">${text(at)}</div></td></tr></table>`,
  ];
  for (const [at, layout] of layouts.entries()) {
    const { markdown } = readThread(
      '<meta name="generator" content="phpBB">',
      `<main><h1>Frozen ropes</h1>${names.map(layout).join('')}</main>`,
    );
    const dates = ['Jan 04, 2030 3:04 pm', 'Jan 04, 2030 3:04 pm', '04-01-2030, 03:04 PM', '04-01-2030, 03:04 PM'];
    for (const name of names) assert.ok(markdown.includes(`### ${name}, ${dates[at]}\n`), markdown);
  }
});

test('a command that several answers have in common stays in each, a line that ends all of them does not', () => {
  const code = '<pre><code>rope --thaw --with boiling-water</code></pre>';
  const post = ([name, text]: [string, string], at: number): string =>
    `<article class="post" id="post-${at + 10}"><span class="username">${name}</span><div class="post-body"><p>${text}</p>${code}<p>Sent from the harbour of my choice.</p></div></article>`;
  const { markdown } = readThread(
    '<meta name="generator" content="phpBB">',
    `<main>${posts.map(post).join('')}</main>`,
  );
  assert.equal(markdown.match(/rope --thaw/g)?.length, posts.length, markdown);
  assert.ok(!markdown.includes('of my choice'), markdown);
});

test('the description of an issue in GitLab and the mails of a list in HyperKitty are posts', () => {
  const notes = posts.map(
    ([name, text], at) =>
      `<li id="note_4711${at}" class="note note-wrapper note-comment timeline-entry"><a class="author-name-link" href="/${name}">${name}</a> <time datetime="2030-01-03">Jan 3, 2030</time><div class="note-body"><div class="note-text md"><p>${text}</p></div></div></li>`,
  );
  const description = `<div class="issue-details issuable-details"><div class="description"><div class="md"><p>${says('raft')}</p></div></div></div>`;
  const issue = readThread(
    '',
    `<main><h1>Frozen ropes at the pier</h1>${description}<ul>${notes.join('')}</ul></main>`,
  );
  assert.ok(issue.markdown.startsWith(says('raft')), issue.markdown);
  assert.equal(issue.markdown.match(/^### \w+, Jan 3, 2030$/gm)?.length, posts.length, issue.markdown);
  const mails = posts.map(
    ([name, text], at) =>
      `<div class="even"><div class="email"><div id="X${at}" class="email-header"><h2 class="name"><a href="/users/${at}/">${name}</a></h2><div class="email-date"><div class="time"><span>3 Jan 2030</span></div></div></div><div class="email-body"><p>${text}</p></div></div></div>`,
  );
  checkThread('', `<div id="thread-content"><h1>Frozen ropes at the pier</h1>${mails.join('')}</div>`, { posts });
});

test('a post whose text is marked as a quotation is none, and what it quotes is', () => {
  const smilie = '<img src="clear.png" class="mceSmilieSprite mceSmilie8" alt=":D">';
  const quote =
    '<blockquote class="quoteContainer"><div class="quote">Whose boat?</div><div class="quoteExpand">Click to expand...</div></blockquote>';
  const body = posts.map(
    ([author, text], at) =>
      `<li id="post-${at + 10}" class="message" data-author="${author}"><div class="messageContent"><article>
       <blockquote class="messageText ugc baseHtml">${at === 1 ? quote : ''}${text} ${smilie}</blockquote></article></div></li>`,
  );
  const { markdown } = readThread('', `<ol>${body.join('')}</ol>`);
  const [alma, bert] = [says('dinghy'), says('barge')];
  assert.ok(
    markdown.startsWith(`### Alma\n\n${alma} :D\n\n### Bert\n\n> Whose boat?\n\n${bert} :D\n\n### Cora`),
    markdown,
  );
});

test('a page is a thread if phpBB or XenForo says so, however little of it looks like one', () => {
  const text = `<div id="p564" class="post"><div class="postbody"><div class="content">${says('dinghy')}</div></div></div>`;
  const typeOf = (html: string): string =>
    parsePage({ bytes: Buffer.from(html), contentType: 'text/html', url: 'https://site.test/bateaux-t190.html' })
      .pageType;
  assert.equal(
    typeOf(`<html><title>Bateaux</title><body id="phpbb" class="section-viewtopic ltr">${text}</body></html>`),
    'forum',
  );
  assert.equal(
    typeOf(`<html id="XF" data-template="thread_view"><title>Bateaux</title><body>${text}</body></html>`),
    'forum',
  );
  assert.equal(
    typeOf(`<html><title>Bateaux</title><body id="phpbb" class="section-memberlist">${text}</body></html>`),
    'article',
  );
});
