import { absoluteLinks } from '../absolute-links.ts';

const exDoc = /^\s*sidebarNodes\s*=\s*(?=\{)/;

/**
 * The pages in a script that holds a menu as data, absolute, each once: Doxygen's (`{text:"Classes",url:"annotated.html"}`)
 * or that of ExDoc, which names pages of the folder above by their ids. None if it is neither.
 */
export function menuLinks(bytes: Uint8Array, base: string): string[] {
  const text = new TextDecoder().decode(bytes);
  return absoluteLinks(exDoc.test(text) ? pagesOfExDoc(text) : addresses(text), base);
}

function* addresses(text: string): Generator<string> {
  for (const [, , href = ''] of text.matchAll(/\burl:\s*(["'])([^"'\\\n]{1,2000})\1/g)) yield href;
}

/** Each group of pages is a list of objects. What they contain are places within the pages. */
function* pagesOfExDoc(text: string): Generator<string> {
  const groups = parseObject(text.replace(exDoc, '').replace(/;?\s*$/, ''));
  for (const pages of Object.values(groups)) {
    if (!Array.isArray(pages)) continue;
    for (const page of pages as { id?: unknown }[])
      if (typeof page?.id === 'string') yield `../${encodeURIComponent(page.id)}.html`;
  }
}

function parseObject(json: string): object {
  try {
    return JSON.parse(json) as object;
  } catch {
    return {};
  }
}
