// What a person chose for this browser: the theme, and whether single keys do something.

type Theme = 'system' | 'light' | 'dark';

function stored(name: string): string | null {
  try {
    return localStorage.getItem(`windlass.${name}`);
  } catch {
    return null;
  }
}

function store(name: string, value: string): void {
  try {
    localStorage.setItem(`windlass.${name}`, value);
  } catch {
    // A browser that keeps nothing: the choice holds until the tab is closed.
  }
}

class Settings {
  theme = $state<Theme>((stored('theme') as Theme | null) ?? 'system');
  keys = $state(stored('keys') !== 'off');

  apply(): void {
    document.documentElement.dataset['theme'] = this.theme;
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    store('theme', theme);
    this.apply();
  }

  nextTheme(): void {
    const order: Theme[] = ['system', 'light', 'dark'];
    this.setTheme(order[(order.indexOf(this.theme) + 1) % order.length] ?? 'system');
  }

  setKeys(on: boolean): void {
    this.keys = on;
    store('keys', on ? 'on' : 'off');
  }
}

export const settings = new Settings();
