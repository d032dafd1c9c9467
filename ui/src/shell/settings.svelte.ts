// The user's settings in this browser: the theme, whether single keys are commands, and sizes.
import { parse, print } from '../api/json';

/** Columns of the list of runs that can be resized. */
export type Column = 'state' | 'workflow' | 'run' | 'loop' | 'started' | 'took';
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
    // If the browser stores nothing, the setting is valid until the tab is closed.
  }
}

function storedWidths(): Partial<Record<Column, number>> {
  try {
    const widths = parse<unknown>(stored('columns') ?? '{}');
    const whole = Object.entries(widths ?? {}).filter(([, width]) => Number.isInteger(width));
    return Object.fromEntries(whole);
  } catch {
    return {};
  }
}

/** Returns the share of the data on a run's page in percent; undefined for the default share. */
function storedSide(): number | undefined {
  const side = Number.parseInt(stored('side') ?? '', 10);
  return side >= SIDE.least && side <= SIDE.most ? side : undefined;
}

export const SIDE = { least: 20, most: 80 };

class Settings {
  theme = $state<Theme>((stored('theme') as Theme | null) ?? 'system');
  keys = $state(stored('keys') !== 'off');
  /** Widths of columns in pixels. Other columns have their default widths. */
  widths = $state.raw(storedWidths());
  side = $state(storedSide());

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

  setWidths(widths: Partial<Record<Column, number>>): void {
    this.widths = widths;
    store('columns', print(widths));
  }

  setSide(side: number | undefined): void {
    this.side = side;
    store('side', String(side ?? ''));
  }

  setKeys(on: boolean): void {
    this.keys = on;
    store('keys', on ? 'on' : 'off');
  }
}

export const settings = new Settings();
