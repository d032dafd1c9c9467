// What the palette offers: each screen adds its own while it is shown.

import { untrack } from 'svelte';

export interface Command {
  title: string;
  hint?: string;
  does: () => void;
}

class Commands {
  list = $state.raw<Command[]>([]);

  /** Adds commands until the answer is called. */
  add(more: Command[]): () => void {
    // What is added is no reason to add it again.
    untrack(() => (this.list = [...this.list, ...more]));
    return () => {
      untrack(() => (this.list = this.list.filter((one) => !more.includes(one))));
    };
  }
}

export const commands = new Commands();
