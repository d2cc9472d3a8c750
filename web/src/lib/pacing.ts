/** Which moment of the herd is shown: now, one that is renewed every so often, or one that is held. */
import type { Herd } from "./herd";

/** A herd and the hub's time at which it is to be read: ages are counted from it. */
export interface Moment {
  readonly herd: Herd;
  readonly now: number;
}

/** How long beyond its turn a moment may be shown as if all were well, in seconds. */
const GRACE_SECONDS = 3;

export class Pacing {
  #held: Moment | null = null;
  #isPaused = false;
  #everySeconds: number | null = null;

  /** When what is shown was taken, if it stands still until the viewer goes on. */
  get pausedAt(): number | null {
    return this.#isPaused ? (this.#held?.now ?? null) : null;
  }

  get everySeconds(): number | null {
    return this.#everySeconds;
  }

  /** Hold what is there now until `resume`. */
  pause(now: Moment): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#held ??= hold(now);
  }

  resume(): void {
    this.#isPaused = false;
    this.#held = null;
  }

  /** Renew what is shown every so many seconds, or with every message if `null`. */
  setEvery(seconds: number | null): void {
    this.#everySeconds = seconds;
    if (!this.#isPaused) this.#held = null;
  }

  /** Take what is there now, whatever the pace; `false` if that is shown already. */
  renew(now: Moment): boolean {
    if (this.#held === null) return false;
    this.#held = hold(now);
    return true;
  }

  /** What to show. `isUp` says whether the stream is live: nothing new is taken from one that is not. */
  show(now: Moment, isUp: boolean): Moment {
    if (this.#isPaused) return this.#held ?? now;
    if (this.#everySeconds === null) return now;
    const isDue = this.#held === null || now.now - this.#held.now >= this.#everySeconds;
    if (isDue && isUp) this.#held = hold(now);
    return this.#held ?? now;
  }

  /** Whether what is shown is as fresh as the viewer asked for. */
  isFresh(now: Moment): boolean {
    if (this.#isPaused) return false;
    return this.#held === null || now.now - this.#held.now <= (this.#everySeconds ?? 0) + GRACE_SECONDS;
  }
}

function hold({ herd, now }: Moment): Moment {
  return { herd: herd.copy(), now };
}
