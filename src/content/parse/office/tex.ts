const symbols: Record<string, string> = {
  α: 'alpha',
  β: 'beta',
  γ: 'gamma',
  δ: 'delta',
  ε: 'epsilon',
  ϵ: 'epsilon',
  ζ: 'zeta',
  η: 'eta',
  θ: 'theta',
  ι: 'iota',
  κ: 'kappa',
  λ: 'lambda',
  μ: 'mu',
  ν: 'nu',
  ξ: 'xi',
  π: 'pi',
  ρ: 'rho',
  σ: 'sigma',
  τ: 'tau',
  υ: 'upsilon',
  φ: 'phi',
  ϕ: 'phi',
  χ: 'chi',
  ψ: 'psi',
  ω: 'omega',
  Γ: 'Gamma',
  Δ: 'Delta',
  Θ: 'Theta',
  Λ: 'Lambda',
  Ξ: 'Xi',
  Π: 'Pi',
  Σ: 'Sigma',
  Φ: 'Phi',
  Ψ: 'Psi',
  Ω: 'Omega',
  '∞': 'infty',
  '×': 'times',
  '÷': 'div',
  '±': 'pm',
  '∓': 'mp',
  '⋅': 'cdot',
  '·': 'cdot',
  '≤': 'leq',
  '≥': 'geq',
  '≠': 'neq',
  '≈': 'approx',
  '≡': 'equiv',
  '∈': 'in',
  '∉': 'notin',
  '⊂': 'subset',
  '⊆': 'subseteq',
  '∪': 'cup',
  '∩': 'cap',
  '∀': 'forall',
  '∃': 'exists',
  '∇': 'nabla',
  '∂': 'partial',
  '→': 'rightarrow',
  '←': 'leftarrow',
  '⇒': 'Rightarrow',
  '⇔': 'Leftrightarrow',
  '↔': 'leftrightarrow',
  '∑': 'sum',
  '∏': 'prod',
  '∫': 'int',
  '…': 'ldots',
  '⋯': 'cdots',
  '√': 'surd',
  '∝': 'propto',
  '∠': 'angle',
  '⊥': 'perp',
  '∅': 'emptyset',
  '∧': 'wedge',
  '∨': 'vee',
  '¬': 'neg',
};

/** Text as TeX: symbols by name, and characters of the syntax escaped. */
export function characters(text: string): string {
  let out = '';
  for (const one of text) {
    const character = symbols[one] === undefined ? one.normalize('NFKC') : one;
    const name = symbols[character];
    if (name !== undefined) out += `\\${name} `;
    else if (character === '−') out += '-';
    else out += /[#%&_{}$]/.test(character) ? `\\${character}` : character;
  }
  return out;
}

/** A bracket after `\left` or `\right`; a point if there is none. */
export function delimiter(character: string): string {
  if (character === '') return '.';
  return (
    {
      '{': '\\{',
      '}': '\\}',
      '⟨': '\\langle ',
      '⟩': '\\rangle ',
      '⌊': '\\lfloor ',
      '⌋': '\\rfloor ',
      '⌈': '\\lceil ',
      '⌉': '\\rceil ',
      '‖': '\\|',
    }[character] ?? character
  );
}

/** The name of a function as a command, if TeX has one. */
export function functionName(name: string): string {
  return /^(?:sin|cos|tan|cot|sec|csc|sinh|cosh|tanh|log|ln|lim|max|min|exp|det|dim|gcd|inf|sup|arg|arcsin|arccos|arctan)(?![a-z])/.test(
    name,
  )
    ? `\\${name}`
    : name;
}

/** A base of several symbols is grouped; otherwise the script would apply only to the last one. */
export function base(text: string): string {
  return text.startsWith('\\frac') || (/ |[+=-]/.test(text) && !text.startsWith('\\left')) ? `{${text}}` : text;
}
