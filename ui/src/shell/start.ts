// Mounts the shell and starts what every screen needs.
import { mount } from 'svelte';
import '../styles/tokens.css';
import '../styles/base.css';
import '../styles/shell.css';
import '../styles/runs.css';
import '../styles/run.css';
import '../styles/graph.css';
import '../styles/editor.css';
import '../styles/workflows.css';
import '../styles/docs.css';
import App from '../App.svelte';
import { keys } from './keys.svelte';
import { session } from './session.svelte';
import { settings } from './settings.svelte';

export function start(): void {
  settings.apply();
  void session.start();
  addEventListener('keydown', (event) => keys.take(event));
  const target = document.getElementById('app');
  if (target) mount(App, { target });
}
