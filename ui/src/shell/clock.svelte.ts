// The current time of the server's clock, updated twice a second, for ages and countdowns.
import { live } from '../live/live.svelte';

class Clock {
  private browser = $state(Date.now());
  now = $derived(this.browser + live.ahead);

  constructor() {
    setInterval(() => {
      if (!document.hidden) this.browser = Date.now();
    }, 500);
    document.addEventListener('visibilitychange', () => {
      this.browser = Date.now();
    });
  }
}

export const clock = new Clock();
