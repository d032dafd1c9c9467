// Builds the console into dist/ under names that never change; the server adds `?v=` to those in index.html.
// app.js is the shell. The others come when they are needed and import from it: run.js, the screen of a run;
// workflows.js, those of kept workflows; docs.js, the manual; edit.js, the screen that edits; editor.js, the text editor in it.
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

/** Where a module goes: what only one screen uses goes to that screen. */
function chunk(id: string): string | undefined {
  if (/\/(@codemirror|@lezer|@marijn|crelt|style-mod|w3c-keyname)\/|\/src\/editor\/(code|language)\.ts/.test(id)) return 'editor';
  if (/\/src\/(workflows\/|editor\/merge)/.test(id)) return 'workflows';
  if (/\/src\/editor\//.test(id)) return 'edit';
  if (/\/(marked|src\/docs)\/|\/svelte-element\.js$/.test(id)) return 'docs';
  if (/\/src\/(run|graph)\/|\/svelte\/src\/.*\/(map|actions)\.js$/.test(id)) return 'run';
  return undefined;
}

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
        chunkFileNames: '[name].js',
        assetFileNames: 'app[extname]',
        onlyExplicitManualChunks: true,
        manualChunks: chunk,
      },
    },
  },
});
