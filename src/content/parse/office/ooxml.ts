import { child, childElements, descendants, parseXml, textOf, type XmlElement } from '../format/xml.ts';
import type { ZipArchive } from '../format/zip.ts';
import { isoDate } from '../text/text.ts';
import type { ParsedDocument } from '../types.ts';

export type Relationship = { type: string; target: string; external: boolean };

/** The relationships of a part by id, targets as paths in the archive. */
export function relationshipsOf(zip: ZipArchive, part: string): Map<string, Relationship> {
  const slash = part.lastIndexOf('/');
  const folder = slash < 0 ? '' : part.slice(0, slash + 1);
  const text = zip.readText(`${folder}_rels/${part.slice(slash + 1)}.rels`);
  const found = new Map<string, Relationship>();
  if (text === undefined) return found;
  for (const one of childElements(child(parseXml(text), 'Relationships'), 'Relationship')) {
    const target = one.attributes.Target ?? '';
    const external = one.attributes.TargetMode === 'External';
    const type = (one.attributes.Type ?? '').split('/').at(-1) ?? '';
    found.set(one.attributes.Id ?? '', { type, target: external ? target : resolvePath(folder, target), external });
  }
  return found;
}

/** The main part of the package (`officeDocument`), or undefined. */
export function mainPart(zip: ZipArchive): string | undefined {
  const part = [...relationshipsOf(zip, '').values()].find((one) => one.type === 'officeDocument')?.target;
  return part !== undefined && zip.has(part) ? part : undefined;
}

/** Parsed XML of a part, or undefined when the part is missing. */
export function readPart(zip: ZipArchive, part: string | undefined): XmlElement | undefined {
  const text = part === undefined ? undefined : zip.readText(part);
  return text === undefined ? undefined : parseXml(text);
}

/** The files of the pictures that an element shows, each once, in the order of the text. */
export function picturesOf(element: XmlElement, links: Map<string, Relationship>): string[] {
  const shown = [
    ...descendants(element, 'blip').map(({ attributes }) => attributes['r:embed'] ?? attributes.embed),
    ...descendants(element, 'imagedata').map(({ attributes }) => attributes['r:id'] ?? attributes.id),
  ].map((id) => links.get(id ?? ''));
  return [...new Set(shown.flatMap((one) => (one === undefined || one.external ? [] : [one.target])))];
}

/** The metadata in docProps/core.xml. */
export function coreProperties(zip: ZipArchive): Omit<ParsedDocument, 'kind' | 'markdown'> {
  const part = [...relationshipsOf(zip, '').values()].find((one) => one.type === 'core-properties')?.target;
  const core = child(readPart(zip, part ?? 'docProps/core.xml'), 'coreProperties');
  const field = (name: string): string => textOf(child(core, name)).trim();
  const created = isoDate(field('created'));
  const modified = isoDate(field('modified'));
  return {
    ...(field('title') ? { title: field('title') } : {}),
    ...(field('creator') ? { author: field('creator') } : {}),
    ...(field('language') ? { language: field('language') } : {}),
    ...(created ? { created } : {}),
    ...(modified ? { modified } : {}),
  };
}

/** The path in the archive of a target that is relative to a folder, or absolute. */
export function resolvePath(folder: string, target: string): string {
  if (target.startsWith('/')) return target.slice(1);
  const parts = folder.split('/').filter(Boolean);
  for (const step of target.split('/')) {
    if (step === '..') parts.pop();
    else if (step !== '.' && step !== '') parts.push(step);
  }
  return parts.join('/');
}

/** An on/off property: present, and not switched off. */
export function isOn(element: XmlElement | undefined): boolean {
  if (!element) return false;
  const value = element.attributes.val;
  return value === undefined || !/^(?:0|false|off|none)$/.test(value);
}
