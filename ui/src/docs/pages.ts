// The pages of the manual as the server has them, their sections, and the search in them.
import { lexer, type Token, type Tokens } from 'marked';

export interface Section { page: string; anchor: string; title: string; text: string }
export interface Entry { page: string; title: string }
export interface Part { title: string; entries: Entry[] }
export interface Hit extends Section { excerpt: string }

export class Manual {
  readonly parts: Part[] = [];
  readonly titles = new Map<string, string>();
  private readonly sections: Section[] = [];

  constructor(private readonly pages: Record<string, string>) {
    for (const token of lexer(pages['SUMMARY'] ?? '')) {
      if (token.type === 'heading') this.parts.push({ title: token.text as string, entries: [] });
      for (const { href, text } of linksOf(token)) {
        const page = href.replace(/\.md$/, '');
        if (!(page in pages)) continue;
        this.parts.at(-1)?.entries.push({ page, title: text });
        this.titles.set(page, text);
      }
    }
    for (const page of this.titles.keys()) this.cut(page);
  }

  has(page: string): boolean {
    return this.titles.has(page);
  }

  tokens(page: string): Token[] {
    return lexer(this.pages[page] ?? '');
  }

  /** Returns the sections that contain all words. Those with a word in the title are first. */
  find(text: string): Hit[] {
    const words = text.toLowerCase().split(/\s+/).filter((word) => word !== '');
    if (words.length === 0) return [];
    const hits: { worth: number; hit: Hit }[] = [];
    for (const section of this.sections) {
      const title = section.title.toLowerCase();
      const low = section.text.toLowerCase();
      if (!words.every((word) => title.includes(word) || low.includes(word))) continue;
      const worth = words.reduce((sum, word) => sum + (title.includes(word) ? 10 : 0) + Math.min(5, low.split(word).length - 1), 0);
      const at = Math.max(0, Math.min(...words.map((word) => low.indexOf(word)).filter((one) => one >= 0), low.length) - 60);
      hits.push({ worth, hit: { ...section, excerpt: `${at > 0 ? '…' : ''}${section.text.slice(at, at + 180).trim()}` } });
    }
    return hits.sort((a, b) => b.worth - a.worth).slice(0, 40).map(({ hit }) => hit);
  }

  private cut(page: string): void {
    let section: Section | undefined;
    for (const token of this.tokens(page)) {
      if (token.type === 'heading') this.sections.push((section = { page, anchor: anchorOf(plain(token)), title: plain(token), text: '' }));
      else if (section) section.text += `${plain(token)}\n`;
    }
  }
}

let loaded: Promise<Manual> | undefined;

export function manual(): Promise<Manual> {
  loaded ??= fetch('/ui/docs.json').then(async (answer) => new Manual((await answer.json()) as Record<string, string>)).catch((error: unknown) => {
    loaded = undefined;
    throw error;
  });
  return loaded;
}

/** Returns the anchor of a heading, as GitHub generates it. */
export const anchorOf = (title: string): string => title.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').trim().replace(/\s/g, '-');

/** Returns the text of a token without Markdown signs. */
export function plain(token: Token): string {
  if (token.type === 'table') {
    const { header, rows } = token as Tokens.Table;
    return [header, ...rows].map((row) => row.map((cell) => cell.tokens.map(plain).join('')).join(' ')).join('\n');
  }
  if (token.type === 'list') return (token as Tokens.List).items.map((item) => item.tokens.map(plain).join(' ')).join('\n');
  if ('tokens' in token && token.tokens) return token.tokens.map(plain).join('');
  return 'text' in token && typeof token.text === 'string' ? token.text : '';
}

function linksOf(token: Token): Tokens.Link[] {
  if (token.type === 'link') return [token as Tokens.Link];
  const within = token.type === 'list' ? (token as Tokens.List).items : 'tokens' in token ? (token.tokens ?? []) : [];
  return within.flatMap(linksOf);
}

/** Returns where a link of a page leads: within the manual, outside of it, or nowhere (a file of the project). */
export function target(manual: Manual, page: string, href: string): { inside: string } | { outside: string } | undefined {
  if (/^https?:\/\//.test(href)) return { outside: href };
  const [path = '', anchor] = href.split('#');
  const to = path === '' ? page : new URL(path, `file:///${page}`).pathname.slice(1).replace(/\.md$/, '');
  return manual.has(to) ? { inside: `/ui/docs/${to}${anchor ? `#${anchor}` : ''}` } : undefined;
}
