// Builds the console into dist/ under names that never change; the server adds `?v=` to them.
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
    rolldownOptions: {
      output: {
        codeSplitting: false,
        entryFileNames: 'app.js',
        assetFileNames: 'app[extname]',
      },
    },
  },
});
