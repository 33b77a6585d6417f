import { child, childElements, descend, textOf, type XmlElement } from '../format/xml.ts';
import { base, characters, delimiter, functionName } from './tex.ts';

/** An Office Math formula as TeX. */
export function mathToTex(element: XmlElement): string {
  return convertChildren(element).replaceAll(/\s+/g, ' ').trim();
}

function convertChildren(element: XmlElement | undefined): string {
  return childElements(element).map(convert).join('');
}

function convert(element: XmlElement): string {
  const part = (name: string): string => convertChildren(child(element, name));
  const property = (name: string): string | undefined => descend(element, `${element.name}Pr`, name)?.attributes.val;
  switch (element.name) {
    case 'r':
      return childElements(element, 't')
        .map((text) => characters(textOf(text)))
        .join('');
    case 'f':
      return property('type') === 'noBar'
        ? `\\genfrac{}{}{0pt}{}{${part('num')}}{${part('den')}}`
        : `\\frac{${part('num')}}{${part('den')}}`;
    case 'sSup':
      return `${base(part('e'))}^{${part('sup')}}`;
    case 'sSub':
      return `${base(part('e'))}_{${part('sub')}}`;
    case 'sSubSup':
      return `${base(part('e'))}_{${part('sub')}}^{${part('sup')}}`;
    case 'sPre':
      return `{}${script('_', part('sub'))}${script('^', part('sup'))}${part('e')}`;
    case 'rad': {
      const degree = part('deg');
      return degree === '' ? `\\sqrt{${part('e')}}` : `\\sqrt[${degree}]{${part('e')}}`;
    }
    case 'nary': {
      const operator = operators[property('chr') ?? '∫'] ?? property('chr') ?? '\\int ';
      const sub = part('sub');
      const sup = part('sup');
      return `${operator.trimEnd()}${sub === '' ? '' : `_{${sub}}`}${sup === '' ? '' : `^{${sup}}`}${operator.startsWith('\\') && sub === '' && sup === '' ? ' ' : ''}${part('e')}`;
    }
    case 'd': {
      const open = property('begChr') ?? '(';
      const close = property('endChr') ?? ')';
      const inner = childElements(element, 'e')
        .map(convertChildren)
        .join(property('sepChr') ?? '|');
      return `\\left${delimiter(open)}${inner}\\right${delimiter(close)}`;
    }
    case 'func':
      return `${functionName(part('fName'))}${part('e').startsWith('\\left') ? '' : ' '}${part('e')}`;
    case 'limLow':
      return `${part('e')}_{${part('lim')}}`;
    case 'limUpp':
      return `${part('e')}^{${part('lim')}}`;
    case 'acc':
      return `${accents[property('chr') ?? '\u0302'] ?? '\\hat'}{${part('e')}}`;
    case 'bar':
      return `${property('pos') === 'bot' ? '\\underline' : '\\overline'}{${part('e')}}`;
    case 'groupChr':
      return `${property('pos') === 'top' ? '\\overbrace' : '\\underbrace'}{${part('e')}}`;
    case 'borderBox':
    case 'box':
    case 'phant':
      return part('e');
    case 'm': {
      const rows = childElements(element, 'mr').map((row) => childElements(row, 'e').map(convertChildren).join(' & '));
      return `\\begin{matrix}${rows.join(' \\\\ ')}\\end{matrix}`;
    }
    case 'eqArr': {
      const lines = childElements(element, 'e').map(convertChildren);
      return lines.length === 1 ? (lines[0] ?? '') : `\\begin{aligned}${lines.join(' \\\\ ')}\\end{aligned}`;
    }
    case 'ctrlPr':
    case 'rPr':
      return '';
    default:
      return element.name.endsWith('Pr') ? '' : convertChildren(element);
  }
}

function script(sign: string, text: string): string {
  return text.trim() === '' ? '' : `${sign}{${text}}`;
}

const operators: Record<string, string> = {
  '∑': '\\sum ',
  '∏': '\\prod ',
  '∫': '\\int ',
  '∬': '\\iint ',
  '∮': '\\oint ',
  '⋃': '\\bigcup ',
  '⋂': '\\bigcap ',
  '⋀': '\\bigwedge ',
  '⋁': '\\bigvee ',
  '∭': '\\iiint ',
  '∯': '\\oiint ',
  '∰': '\\oiiint ',
};
const accents: Record<string, string> = {
  '\u0302': '\\hat',
  '\u0303': '\\tilde',
  '\u0304': '\\bar',
  '\u0305': '\\overline',
  '\u0307': '\\dot',
  '\u0308': '\\ddot',
  '\u20d7': '\\vec',
  '\u030c': '\\check',
};
