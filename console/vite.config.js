import { defineConfig } from 'vite';

export default defineConfig({
  base: '/console/',
  publicDir: 'public',
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
