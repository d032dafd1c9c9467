// Builds the console into dist/ under names that never change; the server adds `?v=` to those in index.html.
// app.js is the shell; run.js, the screen of a run, comes when it is needed and imports from app.js.
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

export default defineConfig({
  base: '/ui/',
  plugins: [svelte()],
  server: { proxy: { '/v1': process.env['WINDLASS'] ?? 'http://127.0.0.1:7465' } },
  build: {
    target: 'es2022',
    cssCodeSplit: false,
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: 'app.js',
        chunkFileNames: 'run.js',
        assetFileNames: 'app[extname]',
      },
    },
  },
});
