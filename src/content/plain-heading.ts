/** Of a longer heading, nothing behind so many characters of Markdown is shown. */
const markdownCharactersMax = 1_000;
/** Stands around the number of a code span, which may be the text of a link. */
const codeMark = '\0';

/** The text of a heading without the marks of Markdown: links, images, code and emphasis as their text. Takes linear time. */
export function plainHeading(markdown: string): string {
  const heading = markdown.slice(0, markdownCharactersMax).replaceAll(codeMark, '');
  const ticks = [...heading.matchAll(/`+/g)];
  const codes: string[] = [];
  let text = '';
  let read = 0;
  for (const [at, opening] of ticks.entries()) {
    if (opening.index < read) continue;
    const closing = ticks.slice(at + 1).find(([run]) => run.length === opening[0].length);
    if (closing === undefined) continue;
    text += heading.slice(read, opening.index) + codeMark + codes.length + codeMark;
    codes.push(heading.slice(opening.index + opening[0].length, closing.index).trim());
    read = closing.index + closing[0].length;
  }
  text += heading.slice(read);
  return plainText(text)
    .replace(/\0(\d+)\0/g, (_, code) => codes[code] ?? '')
    .replace(/\s+/g, ' ')
    .trim();
}

const inlineTag = /<\/?(?:a|b|br|code|em|i|img|kbd|small|span|strong|sub|sup)(?=[\s/>])[^<>]*>/gi;
const linkOrImage = /!?\[((?:\\.|[^[\]\\])*)\]\((?:[^()[\s]|\([^()[\s]*\))*(?:\s+"[^"[]*")?\)/g;
const emphasis = /(?<![\\\w])(\*{1,3}|_{1,3}|~~)(?=\S)([^*_~]*[^*_~\s\\])\1(?!\w)/g;

function plainText(text: string): string {
  return (
    text
      .replace(inlineTag, '')
      // An image may be the text of a link, and emphasis may be in emphasis.
      .replace(linkOrImage, '$1')
      .replace(linkOrImage, '$1')
      .replace(/<((?:https?|mailto):[^<>\s]*)>/g, '$1')
      .replace(emphasis, '$2')
      .replace(emphasis, '$2')
      .replace(/\\([!-/:-@[-`{-~])/g, '$1')
  );
}
