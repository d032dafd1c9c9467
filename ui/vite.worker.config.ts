// Builds the shared worker as one classic script beside the console.
import { defineConfig } from 'vite';

export default defineConfig({
  publicDir: false,
  build: {
    target: 'es2022',
    emptyOutDir: false,
    lib: { entry: 'src/live/worker.ts', formats: ['iife'], name: 'windlass', fileName: () => 'worker.js' },
  },
});
