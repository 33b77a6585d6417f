import { childElements, textOf, type XmlElement } from '../format/xml.ts';
import { base, characters, delimiter, functionName } from './tex.ts';

/** A formula in MathML as TeX. */
export function mathmlToTex(element: XmlElement): string {
  return convertChildren(element).replaceAll(/\s+/g, ' ').trim();
}

function convertChildren(element: XmlElement): string {
  return childElements(element).map(convert).join('');
}

function convert(element: XmlElement): string {
  const parts = childElements(element);
  const part = (index: number): string => {
    const one = parts[index];
    return one ? convert(one) : '';
  };
  switch (element.name) {
    case 'mi': {
      const name = textOf(element).trim();
      return /^[a-z]{2,}$/.test(name) ? `${functionName(name)} ` : characters(name);
    }
    case 'mn':
      return characters(textOf(element).trim());
    case 'mo':
      return operator(element);
    case 'mtext':
    case 'ms':
      return textOf(element).trim() === '' ? ' ' : `\\text{${characters(textOf(element))}}`;
    case 'mfrac':
      return `\\frac{${part(0)}}{${part(1)}}`;
    case 'msqrt':
      return `\\sqrt{${convertChildren(element)}}`;
    case 'mroot':
      return `\\sqrt[${part(1)}]{${part(0)}}`;
    case 'msub':
    case 'munder':
      return element.name === 'munder' && part(1) === '_'
        ? `\\underline{${part(0)}}`
        : `${base(part(0).trimEnd())}_{${part(1)}}`;
    case 'msup':
      return `${base(part(0).trimEnd())}^{${part(1)}}`;
    case 'msubsup':
    case 'munderover':
      return `${base(part(0).trimEnd())}_{${part(1)}}^{${part(2)}}`;
    case 'mover':
      return over(part(0), parts[1]);
    case 'mtable':
      return `\\begin{matrix}${parts.map((row) => childElements(row).map(convertChildren).join(' & ')).join(' \\\\ ')}\\end{matrix}`;
    case 'mfenced': {
      const { open = '(', close = ')', separators = ',' } = element.attributes;
      return `\\left${delimiter(open)}${parts.map(convert).join(separators.trim().charAt(0))}\\right${delimiter(close)}`;
    }
    case 'semantics':
      return part(0);
    case 'annotation':
    case 'annotation-xml':
    case 'mphantom':
      return '';
    case 'mspace':
      return ' ';
    default:
      return convertChildren(element);
  }
}

/** Invisible operators, such as that between a function and its argument, are left out. */
function operator(element: XmlElement): string {
  const text = textOf(element).trim();
  if (/^[\u2061-\u2064]?$/.test(text)) return '';
  return /^[()[\]{}|⟨⟩⌊⌋⌈⌉‖]$/.test(text) ? delimiter(text) : characters(text);
}

function over(below: string, above: XmlElement | undefined): string {
  const accent = above?.name === 'mo' ? accents[textOf(above).trim()] : undefined;
  if (accent !== undefined) return `${accent}{${below}}`;
  return above ? `${base(below.trimEnd())}^{${convert(above)}}` : below;
}

const accents: Record<string, string> = {
  '^': '\\hat',
  ˆ: '\\hat',
  '~': '\\tilde',
  '˜': '\\tilde',
  '¯': '\\overline',
  '―': '\\overline',
  '‾': '\\overline',
  '˙': '\\dot',
  '¨': '\\ddot',
  '→': '\\vec',
  '⃗': '\\vec',
  ˇ: '\\check',
};
