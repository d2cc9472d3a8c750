/** The stream as something to render: one reference that is swapped at every tick. */
import { browserClocks } from "./clock";
import type { Herd } from "./herd";
import { Pacing } from "./pacing";
import { type Connection, HerdStream } from "./stream";
import type { StreamLink } from "./stream-link";

/**
 * What is shown at one moment. The herd changes in place; a new View is what tells the page so. Always read through
 * `view.herd`: a `$derived(view.herd)` is the same object at every tick and would never tell of a change.
 */
export interface View {
  readonly herd: Herd;
  /** The hub's time; ages are counted from it. Stands still while the view does. */
  readonly now: number;
  /** How old the data is, in seconds; `null` before the first snapshot. Never stands still. */
  readonly age: number | null;
  readonly connection: Connection;
  /** Whether what is shown is how things are: connected, and no older than the viewer asked for. */
  readonly isLive: boolean;
  /** The hub's time of what is shown, while the viewer holds it. */
  readonly pausedAt: number | null;
  /** Seconds between two looks, where the viewer wants fewer than the hub gives. */
  readonly everySeconds: number | null;
}

export class LiveHerd {
  readonly #stream: HerdStream;
  readonly #pacing = new Pacing();
  #view = $state.raw<View>()!;

  constructor(link: StreamLink) {
    this.#stream = new HerdStream({
      open: (listener) => link.open(listener),
      clocks: browserClocks,
      timers: {
        set: (action, seconds) => window.setTimeout(action, seconds * 1000),
        clear: (id) => window.clearTimeout(id),
      },
      random: Math.random,
      onUpdate: () => (this.#view = this.#look()),
    });
    this.#view = this.#look();
  }

  get view(): View {
    return this.#view;
  }

  /** Connect; the returned function disconnects. */
  start(): () => void {
    const wake = (): void => {
      if (document.visibilityState === "visible") this.#stream.wake();
    };
    this.#stream.start();
    document.addEventListener("visibilitychange", wake);
    window.addEventListener("online", wake);
    window.addEventListener("pageshow", wake);
    return () => {
      document.removeEventListener("visibilitychange", wake);
      window.removeEventListener("online", wake);
      window.removeEventListener("pageshow", wake);
      this.#stream.stop();
    };
  }

  /** Hold what is shown; messages keep coming in behind it. */
  pause(): void {
    this.#pacing.pause(this.#moment());
    this.#view = this.#look();
  }

  /** Go on, with now. */
  resume(): void {
    this.#pacing.resume();
    this.#view = this.#look();
  }

  /** Show now at once: from what has come in, or, if that is what is shown, by asking the hub again. */
  refresh(): void {
    if (this.#pacing.renew(this.#moment())) this.#view = this.#look();
    else this.#stream.renew();
  }

  /** Ask for nothing more until `renew`: the viewer may not look. */
  rest(): void {
    this.#stream.rest();
  }

  /** Ask the hub for everything anew: the viewer may see more, or less, than before. */
  renew(): void {
    this.#stream.renew();
  }

  /** Look only every so many seconds; `null` is at every message. */
  setEvery(seconds: number | null): void {
    if (this.#pacing.everySeconds === seconds) return;
    this.#pacing.setEvery(seconds);
    this.#view = this.#look();
  }

  #moment(): { herd: Herd; now: number } {
    return { herd: this.#stream.herd, now: this.#stream.now() };
  }

  #look(): View {
    const { connection } = this.#stream;
    const present = this.#moment();
    const isUp = connection.phase === "live";
    const { herd, now } = this.#pacing.show(present, isUp);
    const { pausedAt, everySeconds } = this.#pacing;
    return {
      herd,
      now,
      age: herd.tick === null ? null : Math.max(0, present.now - herd.time),
      connection,
      isLive: isUp && this.#pacing.isFresh(present),
      pausedAt,
      everySeconds,
    };
  }
}
