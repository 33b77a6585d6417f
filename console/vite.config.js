import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const elements = fileURLToPath(new URL('src/ui/jsx-runtime.ts', import.meta.url));

export default defineConfig({
  base: '/console/',
  publicDir: 'public',
  plugins: [
    {
      name: 'visible-turns',
      enforce: 'pre',
      resolveId: (source, importer) => (source === 'react/jsx-runtime' && importer !== elements ? elements : undefined),
    },
  ],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2023',
    rolldownOptions: {
      // Libraries mark modules for servers that render React; this build has none.
      onwarn: (warning, warn) => warning.code === 'MODULE_LEVEL_DIRECTIVE' || warn(warning),
    },
  },
  // `npm run dev:console` beside `npm start`: the console reloads itself, the API is the server's.
  server: {
    port: 5173,
    proxy: {
      '/api': 'http://127.0.0.1:8080',
      '/protected': 'http://127.0.0.1:8080',
      '/console/session': 'http://127.0.0.1:8080',
    },
  },
});
