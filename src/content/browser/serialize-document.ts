/* Runs in the page. Declares the few browser types that it uses, because the rest of the program needs none. */

type DomNode = {
  nodeType: number;
  childNodes: Iterable<DomNode>;
  append(node: DomNode): void;
};
type DomElement = DomNode & {
  localName: string;
  innerHTML: string;
  outerHTML: string;
  shadowRoot: DomNode | null;
  assignedNodes?(options: { flatten: boolean }): DomNode[];
};
type Inert = {
  importNode(node: DomNode, deep: boolean): DomElement;
  createComment(text: string): DomNode;
  createElement(name: string): DomElement;
};
declare const document: {
  documentElement: DomElement;
  body: DomElement | null;
  getElementsByTagName(name: string): Iterable<DomElement> & { length: number };
  implementation: { createHTMLDocument(title: string): Inert };
};

type Terms = { mark: string; isWhole: boolean; elementsMax: number; charactersMax: number };

/**
 * Returns the document as flattened HTML: shadow roots replace the content that they hide, and a comment with the
 * mark and a number replaces each of these frames. Null if the document has too many elements. The function is sent
 * to the page as source text, so it can use nothing outside of itself.
 */
export function serializeDocument(terms: Terms, ...frames: DomElement[]) {
  const { mark, isWhole, elementsMax, charactersMax } = terms;
  const all = document.getElementsByTagName('*');
  if (all.length > elementsMax) return null;
  const cut = (html: string, elements: number) => ({
    html: html.slice(0, charactersMax),
    elements,
    isCut: html.length > charactersMax,
  });
  const top = isWhole ? document.documentElement : document.body;
  if (!top) return cut('', 0);
  if (frames.length === 0 && ![...all].some((element) => element.shadowRoot))
    return cut(isWhole ? top.outerHTML : top.innerHTML, all.length);
  // This document is not displayed, so custom elements stay inactive in it.
  const inert = document.implementation.createHTMLDocument('');
  const copy = inert.importNode(top, false);
  const pending: { from: Iterable<DomNode>; to: DomElement }[] = [{ from: contentOf(top), to: copy }];
  let elements = 0;
  for (let next = pending.pop(); next; next = pending.pop()) {
    for (const node of next.from) {
      if (node.nodeType !== 1) {
        if (node.nodeType === 3) next.to.append(inert.importNode(node, false));
        continue;
      }
      elements += 1;
      if (elements > elementsMax) return null;
      const element = node as DomElement;
      const frame = frames.indexOf(element);
      if (frame >= 0) {
        const place = inert.createElement('div');
        place.append(inert.createComment(mark + frame));
        next.to.append(place);
        continue;
      }
      const own = inert.importNode(element, element.localName === 'template');
      next.to.append(own);
      pending.push({ from: contentOf(element), to: own });
    }
  }
  return cut(isWhole ? copy.outerHTML : copy.innerHTML, elements);

  function contentOf(element: DomElement): Iterable<DomNode> {
    if (element.shadowRoot) return element.shadowRoot.childNodes;
    if (element.localName === 'slot' && element.assignedNodes) {
      const assigned = element.assignedNodes({ flatten: true });
      if (assigned.length > 0) return assigned;
    }
    return element.childNodes;
  }
}
