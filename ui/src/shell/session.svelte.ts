// The session of the user. The token is sent once and never stored; a cookie that scripts cannot read replaces it.
import { messageOf, onSignedOut, Refusal } from '../api/http';
import * as requests from '../api/requests';
import { live } from '../live/live.svelte';

class Session {
  /** Screens do not wait while the phase is `asking`: the server refuses their requests if no user is signed in. */
  phase = $state<'ticket' | 'asking' | 'needed' | 'in'>('asking');
  access = $state('');
  message = $state('');

  constructor() {
    onSignedOut(() => {
      if (this.phase !== 'ticket') this.phase = 'needed';
    });
  }

  /** Whether the user may start and control runs. */
  get operates(): boolean {
    return this.has('operate', 'admin');
  }

  /** Whether the user may also change saved workflows. */
  get administers(): boolean {
    return this.has('admin');
  }

  private has(...roles: string[]): boolean {
    return roles.includes(this.access) && roles.includes(live.hello.access ?? this.access);
  }

  async start(): Promise<void> {
    const ticket = new URLSearchParams(location.hash.slice(1)).get('ticket');
    if (ticket !== null) this.phase = 'ticket';
    if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
    try {
      if (ticket !== null) await requests.redeem(ticket);
    } catch {
      this.message = 'That link was used before or is too old. `windlass ui` makes a new one.';
    }
    this.phase = 'asking';
    await this.look();
  }

  async signIn(token: string): Promise<void> {
    try {
      await requests.signIn(token);
      this.message = '';
      await this.look();
    } catch (error) {
      this.message = error instanceof Refusal && error.status === 401 ? 'The server does not take this token.' : messageOf(error);
    }
  }

  async signOut(): Promise<void> {
    await requests.signOut();
    this.phase = 'needed';
  }

  private async look(): Promise<void> {
    for (;;) {
      try {
        this.access = (await requests.me()).access;
        this.phase = 'in';
        this.message = '';
        live.start();
        return;
      } catch (error) {
        if (error instanceof Refusal && (error.status === 401 || error.status === 403)) {
          this.phase = 'needed';
          if (error.status === 403) this.message = error.message;
          return;
        }
        this.message = messageOf(error);
        await new Promise((done) => setTimeout(done, 1_000));
      }
    }
  }
}

export const session = new Session();
