/** The hub's time as seen from here. Seconds throughout. */

export interface Clocks {
  /** Only moves forward; stands still while the machine sleeps. */
  monotonic(): number;
  /** Goes on while the machine sleeps; may be set. */
  wall(): number;
}

export const browserClocks: Clocks = {
  monotonic: () => performance.now() / 1000,
  wall: () => Date.now() / 1000,
};

const JUMP_SECONDS = 3;

/**
 * Tells the hub's present time from the times in its messages.
 *
 * The message that travelled fastest sets the difference between the two clocks, so a message that was held
 * up on its way (or waited in a sleeping tab) is seen to be old instead of moving the clock back.
 */
export class HubClock {
  #ahead: number | null = null;
  #wallAhead: number;

  constructor(readonly clocks: Clocks) {
    this.#wallAhead = clocks.wall() - clocks.monotonic();
  }

  /** Start over, for a new connection. */
  reset(): void {
    this.#ahead = null;
    this.#wallAhead = this.clocks.wall() - this.clocks.monotonic();
  }

  observe(hubTime: number): void {
    const ahead = hubTime - this.clocks.monotonic();
    if (this.#ahead === null || ahead > this.#ahead) this.#ahead = ahead;
  }

  /** The hub's time now, or `null` before its first message. */
  now(): number | null {
    return this.#ahead === null ? null : this.clocks.monotonic() + this.#ahead;
  }

  /** Whether this machine slept or its clock was set since `reset`: what arrived before may be old. */
  jumped(): boolean {
    return Math.abs(this.clocks.wall() - this.clocks.monotonic() - this.#wallAhead) > JUMP_SECONDS;
  }
}
