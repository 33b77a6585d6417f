import { collect, type HtmlElement, HtmlText, hasAncestor, parseHtml, textLength, textOf, textStart } from '../tree.ts';
import { isChrome, isHidden } from './elements.ts';
import { clone, isLeafBlock, proseLengths, removeNamed, removeWhere } from './measure.ts';
import { hasName, isNamed, isNamedChrome, namesOf } from './names.ts';
import { dropRepeats } from './thread-repeats.ts';

/** One post in a thread. */
type Post = { author: string | undefined; time: string | undefined; accepted?: boolean; body: HtmlElement };

const postsMax = 5_000;
const repliesMin = 3;

/** The posts of a thread in order. Empty if the page has none. */
export function findPosts(body: HtmlElement): Post[] {
  const copy = clone(body, undefined);
  removeWhere(copy, (element) => isHidden(element) || isChrome(element));
  const prose = proseLengths(copy);
  const groups = groupPosts(
    withoutRemarks(collect(copy, isPost).filter((element) => (prose.get(element) ?? 0) > 0)),
    prose,
  );
  const weigh = (group: HtmlElement[]): number =>
    group.reduce((sum, element) => sum + ownProse(element, group, prose), 0);
  const ranked = groups.map((group) => ({ group, weight: weigh(group) })).sort((a, b) => b.weight - a.weight);
  const best = ranked[0];
  if (best === undefined) return [];
  // A question and its answers, or a first post and its replies, have different names.
  const chosen = new Set(best.group);
  const thread = best.group.length === 1 ? best.group[0] : undefined;
  for (const { group, weight } of ranked.slice(1)) {
    if (weight < 30) break;
    // One box may hold the first post and, of another kind, all replies.
    const isReplies =
      thread !== undefined && group.length >= repliesMin && group.every((reply) => contains(thread, reply));
    const overlaps = group.some((one) =>
      [...chosen].some(
        (other) => other === one || (contains(other, one) && !(isReplies && other === thread)) || contains(one, other),
      ),
    );
    if (overlaps) continue;
    if (isReplies) prose.set(thread, ownProse(thread, [thread, ...group], prose));
    for (const one of group) chosen.add(one);
  }
  for (const element of [...chosen]) {
    const outer = widenToPost(element, groups.flat(), chosen);
    if (outer === element) continue;
    chosen.delete(element);
    chosen.add(outer);
  }
  const posts = collect(copy, (element) => chosen.has(element)).slice(0, postsMax);
  return posts.map((element) => readPost(element, chosen, prose)).filter(({ body: text }) => textLength(text) > 0);
}

/**
 * The candidates without those inside a question or an answer: remarks about it, which may be longer than the answer and
 * more numerous than the answers.
 */
function withoutRemarks(candidates: HtmlElement[]): HtmlElement[] {
  const answers = candidates.filter(isAnswer);
  const inner = new Set(answers.filter((one) => !answers.some((other) => other !== one && contains(one, other))));
  if (inner.size < 2) return candidates;
  return candidates.filter((one) => inner.has(one) || !hasAncestor(one, (at) => inner.has(at)));
}

function isAnswer(element: HtmlElement): boolean {
  if (/\/(?:Answer|Question)$/.test(element.attributes.itemtype ?? '')) return true;
  return namesOf(element).some((name) => name === 'answer' || name === 'question');
}

/** The whole post, with author and time, if only its body was detected. */
function widenToPost(element: HtmlElement, candidates: HtmlElement[], chosen: Set<HtmlElement>): HtmlElement {
  let outer = element;
  for (let at = element.parent; at !== undefined; at = at.parent) {
    const box = at;
    if (!candidates.includes(box)) continue;
    if (chosen.has(box) || [...chosen].some((other) => other !== element && contains(box, other))) break;
    outer = box;
  }
  return outer;
}

/** Groups candidates by kind. A box around several posts of another kind is their container, not a post. */
function groupPosts(candidates: HtmlElement[], prose: Map<HtmlElement, number>): HtmlElement[][] {
  const kinds = new Map(candidates.map((element) => [element, signature(element)]));
  const inside = new Map<HtmlElement, Map<string, number>>(candidates.map((element) => [element, new Map()]));
  for (const [element, kind] of kinds)
    for (let at = element.parent; at !== undefined; at = at.parent) {
      const counts = inside.get(at);
      if (counts) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
  const groups = new Map<string, HtmlElement[]>();
  for (const [element, kind] of kinds) {
    const counts = inside.get(element) ?? new Map<string, number>();
    const nested = counts.get(kind) ?? 0;
    const holdsOthers = [...counts].some(([other, count]) => other !== kind && count >= 2 && count > nested + 1);
    if (holdsOthers && ownProse(element, candidates, prose) < (prose.get(element) ?? 0) * 0.25) continue;
    groups.set(kind, [...(groups.get(kind) ?? []), element]);
  }
  return [...groups].filter(([kind, group]) => group.length >= 3 || !kind.startsWith('?')).map(([, group]) => group);
}

const postWord =
  /^(?:post|posts|postitem|comment|comments|commenttext|message|messages|reply|replies|answer|answers|question|msg|topic-post|cpost|thing|comtr|topicpost|postcontainer|postarea|discussion)$/;
const postId =
  /^(?:post|p|comment|c|answer|reply|msg|message|t\d_|elcomment|thing|question|postid|entry|pid|js-post|discussion)[-_]?\d{2,}/i;

const postAttribute = /^data-(?:post|comment|message|reply|answer|p|msg)-?id$/;
/** Ids such as `pb121604416`. They are posts only if several look alike. */
const numberedId = /^[a-z_-]{1,14}\d{4,}$/i;

/** Whether a box is marked as a post: by its name, by a numbered id, or by schema.org. */
function isPost(element: HtmlElement): boolean {
  const { attributes, name } = element;
  if (
    name === 'a' ||
    name === 'span' ||
    name === 'body' ||
    name === 'ul' ||
    name === 'ol' ||
    name === 'form' ||
    /^h\d$/.test(name)
  )
    return false;
  if (/\/(?:Comment|Answer|Question|DiscussionForumPosting)$/.test(attributes.itemtype ?? '')) return true;
  if (Object.keys(attributes).some((key) => postAttribute.test(key)) || attributes.component === 'post') return true;
  if (postId.test(attributes.id ?? '') || numberedId.test(attributes.id ?? '')) return true;
  if (!hint.test(attributes.class ?? '')) return false;
  const names = namesOf(element);
  return names.some((one) => postName.test(one)) || (names.includes('email') && holdsMail(element));
}

/** Whether a box is a mail of a list, as HyperKitty writes it, and not a field for an address. */
function holdsMail(element: HtmlElement): boolean {
  return element.children.some((child) => child.kind === 'element' && namesOf(child).includes('email-body'));
}

/** A cheap check before names are split. */
const hint = /post|comm|comtr|message|reply|answer|question|msg|topic|athing|issue-|detail-page|work-item|email/i;

const postName =
  /^(?:[a-z]{1,8}-)?(?:(?:post|comment|message|reply|answer|question|msg|topic-post|topic-body|crawler-post)(?:-(?:item|container|wrapper|wrap|row|block|stream|box|article|main|single|content|body|\d+))?|c-?post|bbp-reply|bbp-topic|post-\d+|item-comment|comment-item|issue-comment|issue-body|issue-details|detail-page-description|work-item-description|postbit(?:-?\w+)?|comtr|athing|forum-post)$/;

/** A key that posts of one kind share: the same tag, and the same names without numbers and states. */
function signature(element: HtmlElement): string {
  const names = (element.attributes.class ?? '')
    .split(/\s+/)
    .map((name) => name.replace(/\d+/g, ''))
    .filter((name) => postName.test(name.toLowerCase()) || postWord.test(name.toLowerCase()));
  const { id: rawId = '', itemtype = '' } = element.attributes;
  const id = rawId.replace(/\d.*$/, '');
  const vague = names.length === 0 && itemtype === '' && numberedId.test(rawId) && !postId.test(rawId);
  return `${vague ? '?' : ''}${element.name}.${names.sort().join('.')}#${names.length > 0 ? '' : id}${itemtype}`;
}

function contains(outer: HtmlElement, inner: HtmlElement): boolean {
  return hasAncestor(inner, (at) => at === outer);
}

function ownProse(element: HtmlElement, group: HtmlElement[], prose: Map<HtmlElement, number>): number {
  const inside = group.filter((other) => other !== element && contains(element, other));
  const nested = inside
    .filter((one) => !inside.some((other) => other !== one && contains(other, one)))
    .reduce((sum, one) => sum + (prose.get(one) ?? 0), 0);
  return Math.max(0, (prose.get(element) ?? 0) - nested);
}

const bodyWord =
  /(?:^|-)(?:post-?(?:body|text|content|message)|message-?(?:body|text|content|inner)|comment-?(?:body|text|content|message)|user-?content|usertext-body|bb-?wrapper|entry-content|postcell|richtext|rich-text|markdown|md|cooked|prose|commtext|reply-content|body|text|content|message)(?:-|$)/;

/** The author's text, without name, picture, signature and buttons. */
function readPost(element: HtmlElement, posts: Set<HtmlElement>, prose: Map<HtmlElement, number>): Post {
  const author = authorOf(element, posts);
  const body = bodyOf(element, posts, prose);
  const time = timeOf(element, posts) ?? dateBeside(element, body, posts);
  const inner = clone(body, undefined);
  const own = posts.size > 1 ? new Set([...posts].map((post) => post.attributes)) : new Set();
  removeNamed(
    inner,
    (at) =>
      own.has(at.attributes) ||
      isNamed(at, furniture, furniturePhrase) ||
      signatureRole.test(at.attributes['data-role'] ?? '') ||
      (isNamedChrome(at) && textLength(at) < 300) ||
      at.name === 'form' ||
      at.name === 'footer' ||
      isByline(at),
  );
  for (const quote of [inner, ...collect(inner, ({ name }) => name === 'blockquote')])
    if (quote.name === 'blockquote' && hasName(quote, quotedBody)) quote.name = 'div';
  return { author, time, accepted: isAccepted(element), body: inner };
}

/** Whether the page marks the post as the answer that solved the question. */
function isAccepted(post: HtmlElement): boolean {
  return post.attributes.itemprop === 'acceptedAnswer' || namesOf(post).includes('accepted-answer');
}

const furniture =
  /^(?:signature|signatures|sig|avatar|avatars|userinfo|usercard|reactions?|reaction|likes?|votes?|voting|votecell|score|actions?|buttons?|controls?|quicklinks|permalink|reply-links?|editor|attribution|byline|badge|badges|flair|rank|usertitle|share|report|moderation|postnotice|edited|lastedit|tagline|thumbnail|replies|comments|options|tools|expando-button|userdetails|postprofile|profile|statistics|attachments|postsignature|usersig|sigblock|unfurl|onebox)$/;
const signatureRole = /signature$/i;
const furniturePhrase = /(?:^|-)(?:expand-link|quote-expand)(?:-|$)/;
/** The text of a post in vBulletin 4 and XenForo 1, which is a `blockquote`. */
const quotedBody = /^(?:post|message)-?(?:text|content)$/;

function bodyOf(element: HtmlElement, posts: Set<HtmlElement>, prose: Map<HtmlElement, number>): HtmlElement {
  const marked = collect(element, (at) => {
    const { itemprop } = at.attributes;
    return (
      (itemprop === 'text' || itemprop === 'articleBody' || namesOf(at).some((name) => bodyWord.test(name))) &&
      nearest(at, posts) === element
    );
  });
  const whole = prose.get(element) ?? 0;
  let best: HtmlElement | undefined;
  for (const at of marked) {
    if (isStatedText(at) && textLength(at) > 0) return at;
    if (
      best === undefined || !contains(best, at)
        ? (prose.get(at) ?? 0) > (best ? (prose.get(best) ?? 0) : 0)
        : (prose.get(at) ?? 0) >= Math.max(25, (prose.get(best) ?? 0) * 0.9)
    )
      best = at;
  }
  return best !== undefined && (prose.get(best) ?? 0) >= Math.max(10, whole * 0.2) ? best : element;
}

/** Whether schema.org calls an element the text of a post. Outside of an item, such a property is that of a file. */
function isStatedText(element: HtmlElement): boolean {
  const { itemprop } = element.attributes;
  if (itemprop !== 'text' && itemprop !== 'articleBody') return false;
  return hasAncestor(element, ({ attributes }) => attributes.itemscope !== undefined);
}

/** The post that an element belongs to. */
function nearest(element: HtmlElement, posts: Set<HtmlElement>): HtmlElement | undefined {
  for (let at: HtmlElement | undefined = element; at !== undefined; at = at.parent) if (posts.has(at)) return at;
  return undefined;
}

const authorWord =
  /(?:^|-)(?:author|username|user-?name|poster|hnuser|byuser|nickname|display-?name|user-?link|creator|member-?name|fn|user-details)(?:-|$)/;

function authorOf(element: HtmlElement, posts: Set<HtmlElement>): string | undefined {
  for (let at: HtmlElement | undefined = element; at !== undefined; at = at.parent) {
    const named = at.attributes['data-author'] ?? at.attributes['data-username'];
    if (named) return named.slice(0, authorCharactersMax);
  }
  const candidates = collect(
    element,
    (at) =>
      (at.attributes.itemprop === 'author' ||
        at.attributes.itemprop === 'name' ||
        /(?:^|\s)author(?:\s|$)/.test(at.attributes.rel ?? '') ||
        namesOf(at).some((name) => authorWord.test(name))) &&
      nearest(at, posts) === element,
  );
  const people = candidates.filter((at) => !isRank(at));
  for (const candidate of people.toSorted((a, b) => certainty(b) - certainty(a))) {
    const link = collect(candidate, ({ name }) => name === 'a').find((at) => textLength(at) > 0 && !isRank(at));
    const text = textOf(link ?? candidate);
    if (text.length > 0 && text.length <= authorCharactersMax) return text;
  }
  const profile = collect(element, (at) => isProfileLink(at) && nearest(at, posts) === element)[0];
  return profile === undefined || isQuoted(profile, element) ? undefined : textOf(profile);
}

/** Paths and queries of members' pages: `/u/…`, `/users/…`, `/~…`, `profile.php?id=…`, `?action=profile;u=…`. */
const profilePath =
  /^[^?#]*\/(?:(?:u|user|users|member|members|profile|profiles|people)\/[^/?#]|[~@][^/?#]+\/?(?:[?#]|$)|(?:profile|member|memberlist|account)\.php\?)|[?&;](?:action|mode)=(?:view)?profile/i;

function isProfileLink(element: HtmlElement): boolean {
  if (element.name !== 'a' || !profilePath.test(`/${element.attributes.href ?? ''}`)) return false;
  const length = textLength(element);
  return length > 0 && length <= authorCharactersMax;
}

/** Whether a name belongs to the text of a post and not to what is beside it. */
function isQuoted(link: HtmlElement, post: HtmlElement): boolean {
  const isOf = (at: HtmlElement): boolean => at !== post && (at.name === 'p' || at.name === 'blockquote');
  return hasAncestor(link, isOf);
}

const authorCharactersMax = 60;

/** How sure it is that an element names the author: beside a post may also be who edited it last. */
function certainty(element: HtmlElement): number {
  return isPersonName(element) ? 2 : Number(element.attributes.itemprop === 'author');
}

const personName = /(?:^|-)(?:user-?name|author-name|nickname|display-?name|member-?name|hnuser)(?:-|$)/;

/** Whether the page names the element as a person's name, and not as a box about its author. */
function isPersonName(element: HtmlElement): boolean {
  const { rel = '', itemprop } = element.attributes;
  if (itemprop === 'name' && hasAncestor(element, ({ attributes }) => attributes.itemprop === 'author')) return true;
  return /(?:^|\s)author(?:\s|$)/.test(rel) || hasName(element, personName);
}

const rank =
  /(?:^|-)(?:badges?|banners?|ranks?|roles?|flair|user-?title|usergroup|title|label|avatar|joined|count)(?:-(?!container|section|wrapper)|$)/;

/** Titles and badges that a forum gives to its members stand beside their names. */
function isRank(element: HtmlElement): boolean {
  return hasName(element, rank) || (element.parent !== undefined && hasName(element.parent, rank));
}

function timeOf(element: HtmlElement, posts: Set<HtmlElement>): string | undefined {
  const time = collect(
    element,
    (at) =>
      (at.name === 'time' ||
        at.name === 'relative-time' ||
        at.attributes.itemprop === 'datePublished' ||
        at.attributes.itemprop === 'dateCreated' ||
        namesOf(at).some((name) =>
          /(?:^|-)(?:date|time|timestamp|age|posted|relativetime|post-?date|published)(?:-|$)/.test(name),
        )) &&
      nearest(at, posts) === element,
  );
  const written = time.filter((one) => !isOfEdit(one));
  for (const at of written.toSorted((a, b) => Number(isStated(b)) - Number(isStated(a)))) {
    const text = (textOf(at) || at.attributes.datetime || at.attributes.content)?.replace(whatWasDone, '');
    if (text !== undefined && text.length >= 3 && text.length <= 60) return text;
  }
  return undefined;
}

/** Words before a time, as in "asked Sep 9". */
const whatWasDone = /^(?:asked|answered|posted|commented|opened)(?: on| at)?:? /i;
const dateLineCharactersMax = 120;
const month = String.raw`\p{L}{3,12}\.?`;
const day = String.raw`(?:${month} \d{1,2}(?:st|nd|rd|th)?|\d{1,2}\.? (?:de )?${month}),? (?:de )?(?:19|20)\d\d`;
const digits = String.raw`\d{1,2}([-/.])\d{1,2}\1(?:19|20)\d\d|(?:19|20)\d\d-\d{2}-\d{2}`;
const dateAndHour = new RegExp(
  String.raw`(?:${day}|${digits})(?:,| at| @)? ?\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]\.?m\b\.?)?`,
  'iu',
);

/** A date with the time of day in a line beside the text of a post, which has no name in phpBB and vBulletin 3. */
function dateBeside(post: HtmlElement, body: HtmlElement, posts: Set<HtmlElement>): string | undefined {
  for (const line of collect(post, isLeafBlock)) {
    if (line === body || textLength(line) > dateLineCharactersMax) continue;
    const found = dateAndHour.exec(textOf(line))?.[0];
    if (found === undefined || isOfEdit(line) || nearest(line, posts) !== post) continue;
    if (contains(body, line) && !isByline(line)) continue;
    // Beside a post also stands since when its author has been a member.
    if (isOfMember(line) || hasAncestor(line, (at) => at !== post && isOfMember(at))) continue;
    return found;
  }
  return undefined;
}

/** Whether a line says who wrote a post and when: in phpBB it stands within the box of the text. */
function isByline(line: HtmlElement): boolean {
  if (line.name !== 'p' || textLength(line) > dateLineCharactersMax || !hasName(line, authorWord)) return false;
  return dateAndHour.test(textOf(line));
}

function isOfMember(element: HtmlElement): boolean {
  return isNamed(element, memberBox);
}

const memberBox = /^(?:postprofile|profile|userinfo|userdetails|usercard|profile-joined)$/;

function isStated({ attributes }: HtmlElement): boolean {
  return attributes.itemprop === 'datePublished' || attributes.itemprop === 'dateCreated';
}

/** Whether a time says when a post was edited, and not when it was written. */
function isOfEdit(time: HtmlElement): boolean {
  return [time, time.parent].some((at) => at !== undefined && edited.test(textStart(at, editedCharacters)));
}

const edited = /^\W*(?:last |post )?(?:edited|modified|updated)\b/i;
const editedCharacters = 30;

/** Writes a thread as headings with author and time, each followed by the text. */
export function threadContent(posts: Post[]): HtmlElement {
  const root = newElement('div', undefined);
  dropRepeats(posts.map(({ body }) => body));
  for (const { author, time, accepted, body } of posts) {
    const title = [author, time, accepted === true ? 'accepted answer' : undefined]
      .filter((part) => part !== undefined)
      .join(', ');
    if (title !== '') {
      const heading = newElement('h3', root);
      heading.children.push(new HtmlText(title));
      root.children.push(heading);
    }
    body.parent = root;
    root.children.push(
      body.name === 'li' || body.name === 'tr' || body.name === 'td' ? { ...body, name: 'div' } : body,
    );
  }
  return root;
}

function newElement(name: string, parent: HtmlElement | undefined): HtmlElement {
  return { kind: 'element', name, attributes: {}, children: [], parent };
}

/** The posts that a page contains as JSON in an attribute, for its script. */
export function preloadedPosts(body: HtmlElement): Post[] {
  const posts: Post[] = [];
  for (const { attributes } of collect(body, (element) => element.attributes['data-preloaded'] !== undefined))
    collectPosts(attributes['data-preloaded'], posts, 0);
  return posts.slice(0, postsMax);
}

const preloadedDepthMax = 12;

function collectPosts(value: unknown, posts: Post[], depth: number): void {
  if (depth > preloadedDepthMax || posts.length >= postsMax) return;
  if (typeof value === 'string') {
    // Parts of the state are JSON within JSON.
    if (/^[[{]/.test(value)) collectPosts(parseJson(value), posts, depth + 1);
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  const { cooked, username, name, created_at: time } = value as Record<string, unknown>;
  if (typeof cooked === 'string' && typeof username === 'string') {
    const { root } = parseHtml(cooked);
    const author = typeof name === 'string' && name !== '' ? name : username;
    posts.push({ author, time: typeof time === 'string' ? time : undefined, body: { ...root, name: 'div' } });
    return;
  }
  for (const member of Object.values(value)) collectPosts(member, posts, depth + 1);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** How many boxes of the page are named as posts. */
export function countPosts(body: HtmlElement): number {
  return collect(body, isPost).length;
}
