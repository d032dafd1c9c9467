// The commands of the palette. Each screen adds its own while it is shown.

import { untrack } from 'svelte';

export interface Command {
  title: string;
  hint?: string;
  does: () => void;
}

class Commands {
  list = $state.raw<Command[]>([]);

  /** Adds commands until the returned function is called. */
  add(more: Command[]): () => void {
    // Without `untrack`, the added commands would cause another call.
    untrack(() => (this.list = [...this.list, ...more]));
    return () => {
      untrack(() => (this.list = this.list.filter((one) => !more.includes(one))));
    };
  }
}

export const commands = new Commands();
