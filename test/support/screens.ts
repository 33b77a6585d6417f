import type { Page } from 'playwright-core';

/** What is wrong with the layout of the page as it is drawn: nothing may stick out, be cut without a sign, or overlap. */
export function findLayoutProblems(page: Page): Promise<string[]> {
  return page.evaluate(layoutProblems);
}

const layoutProblems = `(() => {
  const problems = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) problems.push('the page scrolls sideways');
  const scrolls = (element) => {
    for (let at = element.parentElement; at; at = at.parentElement) {
      const { overflowX, overflowY, position } = getComputedStyle(at);
      if (/auto|scroll|hidden|clip/.test(overflowX + overflowY)) return true;
      if (position === 'fixed') return true;
    }
    return false;
  };
  const name = (element) => element.tagName.toLowerCase() + '.' + element.className + ' "' + element.textContent.trim().slice(0, 30) + '"';
  const shown = (element) => element.checkVisibility() && !element.closest('.hidden, .cm-editor, svg, iframe');
  for (const element of document.querySelectorAll('body *')) {
    if (!shown(element)) continue;
    const box = element.getBoundingClientRect();
    if (box.width === 0 || box.height === 0) continue;
    if (box.right > width + 1 && !scrolls(element)) problems.push('sticks out: ' + name(element));
    const style = getComputedStyle(element);
    const isCut = element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0;
    const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
    // Boxes side by side are cut without an ellipsis.
    const isRow = /flex|grid/.test(style.display) && element.textContent.trim() !== '';
    if (isCut && (text || isRow) && /hidden|clip/.test(style.overflowX) && (isRow || style.textOverflow !== 'ellipsis'))
      problems.push('cut without a sign: ' + name(element));
  }
  const controls = [...document.querySelectorAll('main :is(button, a.button, input, select, textarea)')].filter(
    (element) => shown(element) && !element.closest('table, [role=tabpanel][hidden]') && element.type !== 'hidden');
  const boxes = controls.map((element) => [element, element.getBoundingClientRect()]);
  for (const [at, [one, a]] of boxes.entries())
    for (const [other, b] of boxes.slice(at + 1)) {
      if (one.contains(other) || other.contains(one) || a.width === 0 || b.width === 0) continue;
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 1) problems.push('overlap: ' + name(one) + ' and ' + name(other));
    }
  for (const parent of document.querySelectorAll('main *')) {
    const { display } = getComputedStyle(parent);
    if (!/flex|grid/.test(display) || !shown(parent)) continue;
    const parts = [...parent.children].filter((part) => shown(part) && part.textContent.trim() !== '' && getComputedStyle(part).position === 'static');
    for (const [at, part] of parts.entries()) {
      const [a, b] = [part, parts[at + 1] ?? parent].map((element) => element.getBoundingClientRect());
      if (parts[at + 1] === undefined || a.width === 0 || b.width === 0) continue;
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
        problems.push('overlap: ' + name(part) + ' and ' + name(parts[at + 1]));
      // A part that is narrower than its words draws them over the next one.
      else if (part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0 && getComputedStyle(part).overflowX === 'visible')
        problems.push('its words are wider: ' + name(part));
    }
  }
  const rows = new Set([...document.querySelectorAll('table.list tbody tr:not(.gap)')].map((row) => Math.round(row.getBoundingClientRect().height)));
  if (width > 620 && [...rows].some((height) => height > 38)) problems.push('rows are ' + [...rows].join(', ') + ' pixels high');
  return problems;
})()`;

/** The screens of an app that was filled by fillRichly. */
export function screensOf(ids: {
  [name: string]: string | Record<string, string>;
  runs: Record<string, string>;
}): Record<string, string> {
  const { runs, ...one } = ids;
  return {
    ...{ overview: '/overview', files: '/files', file: `/files/${one.file}`, extractions: '/extractions' },
    ...{ extraction: `/extractions/${one.extraction}`, knowledge: '/knowledge', source: `/knowledge/${one.source}` },
    ...{
      search: '/knowledge/search',
      answers: '/answers',
      'source-history': `/knowledge/${one.source}?tab=history`,
      document: `/knowledge/documents/${one.document}`,
      'document-versions': `/knowledge/documents/${one.document}?tab=versions`,
      kv: '/kv',
      config: '/config',
    },
    ...{ automations: '/automations', automation: `/automations/${one.automation}`, runs: '/runs' },
    'automation-definition': `/automations/${one.automation}?tab=definition`,
    ...{ run: `/runs/${runs.completed}`, 'run-failed': `/runs/${runs.failed}`, 'run-waiting': `/runs/${runs.waiting}` },
    ...{ approvals: '/approvals', models: '/models', 'model-calls': '/models?tab=calls' },
    ...{ 'model-usage': '/models?tab=usage', 'model-budgets': '/models?tab=budgets', webhooks: '/webhooks' },
    ...{ webhook: `/webhooks/${one.webhook}`, secrets: '/secrets', users: '/users', user: `/users/${one.user}` },
    ...{ orgs: '/orgs', org: `/orgs/${one.org}`, teams: '/teams', team: `/teams/${one.team}`, agents: '/agents' },
    ...{ agent: `/agents/${one.agent}`, threads: '/threads', thread: `/threads/${one.thread}`, keys: '/keys' },
    ...{ installations: '/installations', issuers: '/issuers', usage: '/usage', audit: '/audit', jobs: '/jobs' },
    erasures: '/erasures',
    ...{ sandboxes: '/sandboxes', apps: '/apps', design: '/design' },
  };
}
