/* global Scalar */
// The setting of the guides, so that both look alike.
const chosen = localStorage.getItem('vitepress-theme-appearance') ?? 'auto';
const prefersDark = matchMedia('(prefers-color-scheme: dark)').matches;
const dark = chosen === 'dark' || (chosen === 'auto' && prefersDark);
document.documentElement.classList.toggle('dark', dark);

const accent = `
.light-mode { --scalar-color-accent: #0f6b5c; --scalar-background-accent: #e0f1ed; }
.dark-mode { --scalar-color-accent: #5cc8b1; --scalar-background-accent: #16322c; --scalar-background-1: #111514; --scalar-background-2: #191e1d; --scalar-background-3: #232a28; --scalar-border-color: #2c3432; }
`;

// Nothing here contacts another host: the default fonts, statistics, the assistant, the link to a hosted client and the
// proxy of Scalar stay off, and the policy of the page forbids what is left.
Scalar.createApiReference('#reference', {
  url: new URL('openapi.json', location.href).href,
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  documentDownloadType: 'none',
  persistAuth: false,
  hideModels: true,
  hiddenClients: { node: true, ruby: true, php: true, c: true, clojure: true, csharp: true, java: true, kotlin: true },
  forceDarkModeState: dark ? 'dark' : 'light',
  hideDarkModeToggle: true,
  customCss: accent,
  generateTagSlug: ({ name = '' }) => name,
  generateOperationSlug: ({ operationId, method, path }) => operationId ?? `${method}${path}`,
});
