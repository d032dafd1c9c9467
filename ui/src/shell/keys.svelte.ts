// Keys of the whole console. Each screen adds its own while it is shown, and `?` lists all of them.
import { untrack } from 'svelte';
import { settings } from './settings.svelte';

export interface Key {
  key: string;
  says: string;
  does: () => void;
}

interface Group {
  title: string;
  keys: Key[];
}

class Keys {
  groups = $state.raw<Group[]>([]);

  /** Adds keys until the returned function is called. */
  add(title: string, keys: Key[]): () => void {
    const group = { title, keys };
    // Without `untrack`, the added keys would cause another call.
    untrack(() => (this.groups = [...this.groups, group]));
    return () => {
      untrack(() => (this.groups = this.groups.filter((other) => other !== group)));
    };
  }

  /** Handles a key. Keys in fields and keys with modifiers are left to the browser. */
  take(event: KeyboardEvent): void {
    if (!settings.keys || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.composedPath()[0] as HTMLElement | null;
    if (target?.closest?.('input:not([type=checkbox]), textarea, select, [contenteditable], dialog')) return;
    // The focused element handles these keys itself.
    const own = target?.closest?.('button, a, summary, [role=tab], [role=treeitem], [role=slider], [role=button]');
    if (own && (event.key === 'Enter' || event.key === ' ' || event.key === 'Escape')) return;
    for (const group of [...this.groups].reverse()) {
      const key = group.keys.find((one) => one.key === event.key);
      if (key) {
        event.preventDefault();
        key.does();
        return;
      }
    }
  }
}

export const keys = new Keys();
