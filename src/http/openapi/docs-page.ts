/** The part of Swagger UI's plugin system that this page uses. */
type System = {
  React: { createElement(type: unknown, props: object | null, ...children: unknown[]): unknown };
  getConfigs(): { referenceExamples?: { title: string; text: string }[] };
  layoutSelectors: { currentFilter(): unknown };
  layoutActions: { updateFilter(phrase: string): void; show(place: string[], isShown: boolean): void };
  specSelectors: { tags(): { forEach(each: (tag: Fields) => void): void } };
};
type Fields = { get(name: string): unknown };
type Tag = {
  update(name: string, change: (operations: Tags<Fields>) => unknown): Tag;
  get(name: string): { size: number };
};
type Tags<T> = { map(change: (each: T) => T): Tags<T>; filter(keep: (each: T) => boolean): Tags<T> };

/**
 * A plugin of Swagger UI: examples above the operations, and a search. It is sent to the browser as text, so it can
 * use nothing from this module or any other.
 */
export function referencePlugin({ React }: System) {
  return {
    fn: {
      /** Keeps the operations that contain every word in their method, path, name or description. */
      opsFilter(tags: Tags<Tag>, phrase: string) {
        const words = phrase.toLowerCase().split(/\s+/);
        const matches = (entry: Fields) => {
          const operation = entry.get('operation') as Fields;
          const texts = ['operationId', 'summary', 'description'].map((name) => operation.get(name));
          const text = [entry.get('method'), entry.get('path'), ...texts].join(' ').toLowerCase();
          return words.every((word) => text.includes(word));
        };
        const filtered = tags.map((tag) => tag.update('operations', (operations) => operations.filter(matches)));
        return filtered.filter((tag) => tag.get('operations').size > 0);
      },
    },
    components: {
      FilterContainer({ layoutSelectors, layoutActions, specSelectors }: System) {
        const phrase = layoutSelectors.currentFilter();
        const input = React.createElement('input', {
          type: 'search',
          placeholder: 'upload, webhook, secret …',
          value: typeof phrase === 'string' ? phrase : '',
          onChange: ({ target }: { target: { value: string } }) => {
            layoutActions.updateFilter(target.value);
            specSelectors.tags().forEach((tag) => {
              layoutActions.show(['operations-tag', String(tag.get('name'))], target.value !== '');
            });
          },
        });
        return React.createElement('label', { className: 'wrapper reference-search' }, 'Search operations', input);
      },
    },
    wrapComponents: {
      /** The messages to webhooks are not operations that a search finds. */
      Webhooks: (Original: unknown, system: System) => (props: object) => {
        const phrase = system.layoutSelectors.currentFilter();
        return typeof phrase === 'string' && phrase !== '' ? null : system.React.createElement(Original, props);
      },
      InfoContainer: (Original: unknown, system: System) => (props: object) => {
        const origin = (globalThis as unknown as { location: { origin: string } }).location.origin;
        const examples = (system.getConfigs().referenceExamples ?? []).map(({ title, text }) =>
          React.createElement(
            'details',
            { key: title },
            React.createElement('summary', null, title),
            React.createElement('pre', null, React.createElement('code', null, text.replace('{base}', origin))),
          ),
        );
        const heading = React.createElement('h2', null, 'Examples');
        const section = { className: 'wrapper reference-examples' };
        return React.createElement(
          'div',
          null,
          React.createElement(Original, props),
          React.createElement('section', section, heading, ...examples),
        );
      },
    },
  };
}

export const referenceStyles = `
html { box-sizing: border-box; overflow-y: scroll; }
*, *:before, *:after { box-sizing: inherit; }
body { margin: 0; background: #fafafa; }
.topbar .topbar-wrapper > a.link > * { display: none; }
.topbar .topbar-wrapper > a.link::before { content: ''; width: 40px; height: 40px; background: url('icon.svg') no-repeat; }
/* Hides the input for another document's address: this page shows only one. */
.topbar .download-url-wrapper { visibility: hidden; }
.reference-examples, .reference-search { font-family: sans-serif; color: #3b4151; }
.reference-guides { margin: 0; padding: 12px 20px; font: 14px sans-serif; color: #3b4151; }
.reference-examples { padding: 0 0 20px; }
.reference-examples h2 { margin: 0 0 8px; font-size: 20px; }
.reference-examples details { margin-bottom: 6px; border: 1px solid #c9ced6; border-radius: 4px; background: #fff; }
.reference-examples summary { padding: 8px 12px; cursor: pointer; font-size: 14px; font-weight: 600; }
.reference-examples pre { margin: 0; padding: 12px; overflow-x: auto; background: #1f2733; color: #eef1f5; font-size: 13px; line-height: 1.5; }
.reference-search { display: block; margin: 20px auto 0; font-size: 14px; font-weight: 600; }
.swagger-ui .reference-search input { display: block; width: 100%; margin-top: 6px; padding: 10px; border: 1px solid #5f6b7a; border-radius: 4px; font-size: 15px; }
`;

type SwaggerUi = {
  SwaggerUIBundle: { (options: object): void; presets: { apis: unknown } };
  SwaggerUIStandalonePreset: unknown;
};

/** Starts Swagger UI in the browser. Like the plugin, it can use nothing from this module. */
export function referenceStart(plugin: unknown, examples: unknown, page: unknown): void {
  const { SwaggerUIBundle, SwaggerUIStandalonePreset } = page as SwaggerUi;
  SwaggerUIBundle({
    url: '/openapi.json',
    dom_id: '#swagger-ui',
    presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
    layout: 'StandaloneLayout',
    docExpansion: 'none',
    deepLinking: true,
    persistAuthorization: false,
    validatorUrl: null,
    filter: true,
    // Swagger UI passes options that it does not know to its plugins.
    plugins: [plugin],
    referenceExamples: examples,
  });
}

export const referencePage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Quarry API</title>
<link rel="icon" type="image/svg+xml" href="/docs/static/icon.svg">
<link rel="stylesheet" href="/docs/static/swagger-ui.css">
<link rel="stylesheet" href="/docs/static/reference.css">
</head>
<body>
<p class="reference-guides">The guides are in the folder <code>docs</code>. <code>npm run site</code> builds a site of them for this server, with another reference.</p>
<div id="swagger-ui"></div>
<script src="/docs/static/swagger-ui-bundle.js"></script>
<script src="/docs/static/swagger-ui-standalone-preset.js"></script>
<script src="/docs/static/reference.js"></script>
</body>
</html>
`;
