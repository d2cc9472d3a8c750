/** The stream as something to render: one reference that is swapped at every tick. */
import { browserClocks } from "./clock";
import type { Herd } from "./herd";
import { type Connection, HerdStream } from "./stream";

/**
 * What is shown at one moment. The herd changes in place; a new View is what tells the page so. Always read through
 * `view.herd`: a `$derived(view.herd)` is the same object at every tick and would never tell of a change.
 */
export interface View {
  readonly herd: Herd;
  /** The hub's time; ages are counted from it. */
  readonly now: number;
  /** How old the data is, in seconds; `null` before the first snapshot. */
  readonly age: number | null;
  readonly connection: Connection;
  readonly isLive: boolean;
}

export class LiveHerd {
  readonly #stream: HerdStream;
  #view = $state.raw<View>()!;

  constructor(url: URL) {
    this.#stream = new HerdStream({
      open: (listener) => {
        const source = new EventSource(url);
        const take = (event: MessageEvent): void => listener.message(String(event.data));
        source.addEventListener("snapshot", take);
        source.addEventListener("change", take);
        source.onerror = () => listener.closed();
        return source;
      },
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

  #look(): View {
    const { herd, connection } = this.#stream;
    const isLive = connection.phase === "live";
    return { herd, connection, isLive, now: this.#stream.now(), age: this.#stream.age() };
  }
}
