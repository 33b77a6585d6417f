import { randomBytes } from 'node:crypto';
import type { CDPSession, Frame, Page } from 'playwright-core';
import { RenderError } from './errors.ts';
import { serializeDocument } from './serialize-document.ts';

type DocumentBounds = { elementsMax: number; charactersMax: number; framesMax: number; frameDepthMax: number };

/** A document of a page, in the process that renders it. */
type FrameNode = { session: CDPSession; id: string; children: FrameNode[] };
type Serialized = { html: string; elements: number; isCut: boolean } | null;
type Left = { elements: number; characters: number; frames: number; isCut: boolean; isWithoutFrames: boolean };
export type RenderedDocument = { html: string; isCut: boolean; isWithoutFrames: boolean };
/** `unreachableUrl` is set for an error page of the browser. */
type CdpFrameTree = { frame: { id: string; unreachableUrl?: string }; childFrames?: CdpFrameTree[] };

/**
 * Returns the rendered document, with the contents of open shadow roots where they appear, and those of frames in
 * place of the frames. Reads it in separate JavaScript worlds, where the page has replaced nothing.
 */
export async function readDocument(page: Page, bounds: DocumentBounds): Promise<RenderedDocument> {
  const root = await findFrames(page, bounds);
  const left = {
    elements: bounds.elementsMax,
    characters: bounds.charactersMax,
    frames: bounds.framesMax,
    isCut: false,
    isWithoutFrames: false,
  };
  const html = await readFrame(root, left, { depth: bounds.frameDepthMax, isWhole: true });
  if (html === undefined) throw new RenderError(`The page has more than ${bounds.elementsMax} elements.`);
  return { html, isCut: left.isCut, isWithoutFrames: left.isWithoutFrames };
}

/** Groups the frames by the process that renders them: a frame of another site has its own session. */
async function findFrames(page: Page, { framesMax }: DocumentBounds): Promise<FrameNode> {
  const context = page.context();
  const root = await openTree(await context.newCDPSession(page));
  const roots = new Map<Frame, FrameNode>([[page.mainFrame(), root]]);
  // A frame comes after the frame that contains it.
  for (const frame of page.frames().slice(1, framesMax + 1)) {
    let around: Frame | null = frame.parentFrame();
    while (around && !roots.has(around)) around = around.parentFrame();
    const parent = around ? roots.get(around) : undefined;
    // A frame of the same process has no session. It is in the tree of that process.
    const session = await context.newCDPSession(frame).catch(() => undefined);
    if (!session || !parent) continue;
    const own = await openTree(session).catch(() => undefined);
    if (!own) continue;
    roots.set(frame, own);
    for (const node of allOf(parent)) if (node.session === parent.session) node.children.push(own);
  }
  return root;
}

async function openTree(session: CDPSession): Promise<FrameNode> {
  const { frameTree } = await session.send('Page.getFrameTree');
  if (frameTree.frame.unreachableUrl) throw new Error('an error page');
  const nodeOf = ({ frame, childFrames = [] }: CdpFrameTree): FrameNode => ({
    session,
    id: frame.id,
    children: childFrames.filter(({ frame }) => !frame.unreachableUrl).map(nodeOf),
  });
  return nodeOf(frameTree);
}

function allOf(node: FrameNode): FrameNode[] {
  return [node, ...node.children.flatMap(allOf)];
}

/** Returns the document or (not `isWhole`) what its body contains. Undefined if it has too many elements. */
async function readFrame(
  { session, id, children }: FrameNode,
  left: Left,
  { depth, isWhole }: { depth: number; isWhole: boolean },
): Promise<string | undefined> {
  const { executionContextId } = await session.send('Page.createIsolatedWorld', { frameId: id, worldName: 'quarry' });
  const shown: FrameNode[] = [];
  const owners: { objectId: string }[] = [];
  for (const child of depth > 0 ? children : []) {
    const objectId = await findOwner(session, child, executionContextId);
    if (objectId === undefined) continue;
    shown.push(child);
    owners.push({ objectId });
  }
  const mark = randomBytes(12).toString('hex');
  const { result } = await session.send('Runtime.callFunctionOn', {
    functionDeclaration: serializeDocument.toString(),
    executionContextId,
    arguments: [{ value: { mark, isWhole, elementsMax: left.elements, charactersMax: left.characters } }, ...owners],
    returnByValue: true,
  });
  const own = (result.value ?? null) as Serialized;
  if (own === null) return undefined;
  left.elements -= own.elements;
  left.characters -= own.html.length;
  left.isCut ||= own.isCut;
  const contents = new Map<string, string>();
  for (const [at, child] of shown.entries()) {
    left.isCut ||= left.characters <= 0;
    left.isWithoutFrames ||= left.frames === 0;
    if (left.frames === 0 || left.characters <= 0) break;
    left.frames -= 1;
    // A frame may have disappeared by now. One with too many elements is left out.
    const inner = await readFrame(child, left, { depth: depth - 1, isWhole: false }).catch(() => '');
    left.isWithoutFrames ||= inner === undefined;
    contents.set(`<!--${mark}${at}-->`, inner ?? '');
  }
  return own.html.replaceAll(new RegExp(`<!--${mark}\\d+-->`, 'g'), (place) => contents.get(place) ?? '');
}

/** The element of this document that contains the frame, or undefined if another document contains it. */
async function findOwner(session: CDPSession, frame: FrameNode, executionContextId: number) {
  try {
    const { backendNodeId } = await session.send('DOM.getFrameOwner', { frameId: frame.id });
    const { object } = await session.send('DOM.resolveNode', { backendNodeId, executionContextId });
    return object.objectId;
  } catch {
    return undefined;
  }
}
