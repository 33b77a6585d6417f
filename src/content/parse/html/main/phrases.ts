/** How the lines and headings read that are not part of an article: they point to other pages, or ask for something. */

/** How lines start that only point to another page, in several languages. */
export const pointerStart = startingWith(
  [
    'read (?:more|also|next|this)',
    'see (?:more|also)',
    'also read',
    'also see',
    'more (?:on|from|about)',
    'related(?: (?:story|stories|article|articles|content|posts?|news))?\\s*[:\\-–]',
    "don'?t miss",
    'watch(?: (?:more|now|also|video))?\\s*:',
    'click here',
    'continue reading',
    'view (?:more|gallery)',
    'learn more\\b.{0,30}$',
    'up next',
    'next (?:up|article)',
    'lesen sie (?:auch|mehr|hier)',
    'mehr (?:zum thema|dazu|lesen)',
    'zum weiterlesen',
    'siehe auch',
    'auch interessant',
    'lire aussi',
    'à lire',
    'voir aussi',
    'leia (?:mais|também|tambem)',
    'veja (?:mais|também)',
    'saiba mais',
    'lea también',
    'lee (?:también|más)',
    'leer más',
    'te puede interesar',
    'ver más',
    'leggi anche',
    'guarda anche',
    'lees (?:ook|meer)',
    'zobacz (?:też|także|również)',
    'czytaj (?:też|także|również|więcej)',
    'читайте (?:также|ещё)',
    '関連記事',
    '相关阅读',
    '延伸阅读',
  ],
  'i',
  '\\W*',
);

/** Lines that ask the reader to do something unrelated to the text. */
export const callToAction = startingWith(
  [
    'like this (?:story|article|post)\\?',
    'share (?:this|on|it|via)\\b',
    'follow (?:us|[\\p{L}]+(?: [\\p{L}]+)?) on (?:twitter|facebook|instagram|x|linkedin|youtube)',
    '(?:sign up|subscribe) (?:to|for|now|here|today)\\b',
    'join (?:our|the) (?:newsletter|mailing list|conversation)',
    'click here to\\b',
    'write to .{2,40} at \\S+@',
    '(?:reach|email|contact) (?:the )?(?:reporter|author|writer)s?\\b',
    'tell us what you think',
    'leave a (?:comment|reply)',
    'advert(?:isement)?$',
    'text size$',
    'image \\d+ of \\d+$',
    'media playback is unsupported',
    '(?:tweet|share|print|email|comments?|close|caption|facebook|twitter|whatsapp|pinterest|linkedin|google\\+?)$',
    'tags?:$',
  ],
  'iu',
);

/** Headings above links to other pages. */
export const relatedHeading = startingWith(
  [
    'related(?: (?:articles?|stories|posts?|news|content|links?|topics|reading|products))?',
    '(?:you )?(?:may|might) (?:also )?(?:like|be interested(?: in)?)',
    "you(?:'ll| will) also (?:like|love)",
    'more (?:news|stories|articles|posts|from\\b.{0,40}|on this (?:topic|story)|in this section)',
    'recommended(?: (?:for you|articles?|stories|posts|reading))?',
    'read (?:more|next|also)',
    'see also',
    "don'?t miss",
    'latest (?:news|posts|articles|stories)',
    'recent (?:posts|articles|news)',
    '(?:most|trending) (?:read|popular|viewed|now|stories)',
    'popular (?:posts|articles|now)',
    'trending',
    'comments?(?: \\(\\d+\\))?',
    'leave a (?:comment|reply)',
    'about the author',
    'share this(?: (?:article|story|post))?',
    'tags',
    '(?:das )?könnte (?:sie|dich|ihnen|dir) auch (?:interessieren|gefallen)',
    'mehr zum thema',
    'zum weiterlesen',
    'auch interessant',
    'weitere (?:artikel|themen|meldungen)',
    'ähnliche (?:artikel|beiträge)',
    'lesen sie auch',
    'kommentare',
    'sur le même sujet',
    'articles (?:liés|similaires)',
    'à lire aussi',
    'vous aimerez aussi',
    '(?:você )?(?:também )?pode(?: também)? (?:gostar|interessar)\\b.{0,10}',
    'leia (?:também|mais)',
    'relacionad[oa]s',
    'artículos relacionados',
    'noticias relacionadas',
    '(?:te|le) puede interesar',
    'también te puede\\b.{0,20}',
    'potrebbe(?:ro)? interessarti.{0,10}',
    'leggi anche',
    'articoli correlati',
    'gerelateerd',
    'lees ook',
    'zobacz (?:też|także|również)',
    'czytaj (?:też|także)',
    'powiązane',
    'похожие\\b.{0,20}',
    'читайте также',
    '関連記事',
    'おすすめ',
    '相关(?:文章|阅读|推荐)',
  ],
  'iu',
  '\\W*',
  '\\W*$',
);

const commentWords =
  'comments?|responses?|kommentare?|commentaires?|comentarios?|комментари[ийе]в?|komentarz[ey]?|opinie|σχόλια';

/** Lines that count the comments of readers, which follow: "No comments yet", "3 responses to …", "Comments (3)". */
export const countedComments = startingWith(
  [
    `(?:no|\\d+) (?:(?:reader|user) )?(?:${commentWords}|thoughts?)(?: (?:to|on|about|for|so far|zu|sur|sobre)\\b.{0,140})?`,
    `(?:(?:readers?|user|your) )?(?:${commentWords}) ?\\(\\d+\\)`,
  ],
  'iu',
  '\\W*',
  '\\W*$',
);

/** Headings above the comments of readers, and above the form for another one. */
export const commentsHeading = startingWith(
  [
    '(?:(?:readers?|user|your) )?comments',
    '(?:leser)?kommentare',
    'commentaires',
    'comentarios',
    'комментарии',
    'komentarze',
    'σχόλια',
    '(?:网友)?评论',
    'コメント',
    '(?:leave|post|write|add|submit) (?:a|your) (?:comment|reply|response)s?',
  ],
  'iu',
  '\\W*',
  '\\W*$',
);

function startingWith(patterns: string[], flags: string, before = '', after = ''): RegExp {
  return new RegExp(`^${before}(?:${patterns.join('|')})${after}`, flags);
}
