// Messages to the user: the results of their commands, and news for screen readers at most every 5 s.

export interface Notice {
  id: number;
  text: string;
  bad: boolean;
  link?: { text: string; href: string };
}

class Notices {
  list = $state.raw<Notice[]>([]);
  spoken = $state('');
  private next = 0;
  private waiting = '';
  private spokeAt = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  show(text: string, how: { bad?: boolean; link?: { text: string; href: string } } = {}): void {
    const notice: Notice = { id: (this.next += 1), text, bad: how.bad ?? false, link: how.link };
    this.list = [...this.list.filter((other) => other.text !== text).slice(-3), notice];
    setTimeout(() => this.drop(notice.id), notice.bad ? 15_000 : 8_000);
  }

  drop(id: number): void {
    this.list = this.list.filter((notice) => notice.id !== id);
  }

  speak(text: string): void {
    this.waiting = text;
    const wait = Math.max(0, this.spokeAt + 5_000 - Date.now());
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.spokeAt = Date.now();
      this.spoken = this.waiting;
    }, wait);
  }
}

export const notices = new Notices();
