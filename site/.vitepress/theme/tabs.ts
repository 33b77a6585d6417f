/*
 * A reader chooses a language once: every group of tabs then shows it, on this page and on the next.
 */
const storageKey = 'quarry-docs-language';

export function keepChosenTabs(): void {
  addEventListener('change', ({ target }) => {
    if (!(target instanceof HTMLInputElement) || !target.matches('.vp-code-group .tabs input')) return;
    const language = target.nextElementSibling?.textContent ?? '';
    try {
      localStorage.setItem(storageKey, language);
    } catch {
      // The browser keeps nothing: the choice holds for this page.
    }
    // The tab that was clicked stays where it is on the screen, whatever the groups above it do.
    const before = target.getBoundingClientRect().top;
    showTabs(language);
    scrollBy(0, target.getBoundingClientRect().top - before);
  });
}

export function showChosenTabs(): void {
  const language = readChoice();
  if (language !== null) showTabs(language);
}

function readChoice(): string | null {
  try {
    return localStorage.getItem(storageKey);
  } catch {
    return null;
  }
}

function showTabs(language: string): void {
  for (const group of document.querySelectorAll('.vp-code-group')) {
    const labels = [...group.querySelectorAll('.tabs label')];
    const chosen = labels.findIndex(({ textContent }) => textContent === language);
    if (chosen === -1) continue;
    for (const [index, input] of group.querySelectorAll<HTMLInputElement>('.tabs input').entries())
      input.checked = index === chosen;
    for (const [index, block] of [...(group.querySelector('.blocks')?.children ?? [])].entries())
      block.classList.toggle('active', index === chosen);
  }
}
