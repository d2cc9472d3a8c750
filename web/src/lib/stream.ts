/** Keeps a herd up to date from the hub's live stream, and never calls old data live. */
import { type Clocks, HubClock } from "./clock";
import { Herd } from "./herd";
import type { HerdChange } from "./messages";
import type { OwnCommands } from "./types";

/** An open stream. */
export interface Source {
  close(): void;
}

export interface Listener {
  /** `waitedSeconds`: how long ago it arrived. */
  message: (change: HerdChange, waitedSeconds: number) => void;
  /** What is told to this viewer alone: its own processes. */
  own: (own: OwnCommands) => void;
  /** The stream ended or could not be opened. */
  closed: () => void;
  /** The hub answered, and not with a stream: to whoever has to log in first, or when too many look already. */
  refused: () => void;
  /** Something else than a message came; nothing more will. */
  unreadable: () => void;
}

export interface Timers {
  set(action: () => void, seconds: number): number;
  clear(id: number): void;
}

/** Why the data is not live: cut off, refused, silent, a message missing or unreadable, this machine slept. */
export type Trouble = "closed" | "refused" | "silent" | "gap" | "unreadable" | "slept";
export type Connection =
  | { readonly phase: "connecting" }
  | { readonly phase: "live" }
  | { readonly phase: "down"; readonly trouble: Trouble };

export interface StreamOptions {
  open: (listener: Listener) => Source;
  clocks: Clocks;
  timers: Timers;
  /** Between 0 and 1; spreads the reconnects of many viewers. */
  random: () => number;
  /** Called after every message, about once a second without one, and when the connection changes. */
  onUpdate: () => void;
}

const WATCH_SECONDS = 1;
const QUIET_SECONDS = 1.2;
const TICKS_UNTIL_STALE = 3;
const LEAST_STALE_SECONDS = 3;
/** No hub is slower (`hub.tick_seconds`). */
const LONGEST_TICK_SECONDS = 60;
/**
 * A silent connection may be dead without anyone having said so: open another one. Also one that brings only what is
 * old: it has fallen behind, or the hub's clock was set back, and only a new one can tell.
 */
const SILENT_RECONNECT_SECONDS = 10;
const FIRST_RETRY_SECONDS = 0.5;
const LONGEST_RETRY_SECONDS = 15;

export class HerdStream {
  readonly herd = new Herd();
  connection: Connection = { phase: "connecting" };

  readonly #options: StreamOptions;
  readonly #hubClock: HubClock;
  #source: Source | null = null;
  #retryTimer: number | null = null;
  #watchTimer: number | null = null;
  #failures = 0;
  #openedAt = 0;
  #arrivedAt = 0;
  #freshAt = 0;
  #tickSeconds = 1;
  #lastHubTime: number | null = null;
  #lastWall: number | null = null;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#hubClock = new HubClock(options.clocks);
  }

  start(): void {
    this.#connect();
    this.#watch();
  }

  stop(): void {
    this.#close();
    const { timers } = this.#options;
    if (this.#retryTimer !== null) timers.clear(this.#retryTimer);
    if (this.#watchTimer !== null) timers.clear(this.#watchTimer);
    this.#retryTimer = this.#watchTimer = null;
  }

  /** Look at the clocks now: the tab came back, the network is there again. */
  wake(): void {
    if (this.#retryTimer !== null) this.#connect();
    else this.#judge();
    this.#options.onUpdate();
  }

  /** Stop asking: whoever may not look would be refused again and again. What is shown grows old until `renew`. */
  rest(): void {
    const { timers, onUpdate } = this.#options;
    this.#close();
    if (this.#retryTimer !== null) timers.clear(this.#retryTimer);
    this.#retryTimer = null;
    this.connection = { phase: "down", trouble: "refused" };
    onUpdate();
  }

  /** Ask the hub for everything anew. What is shown stays until the answer is there. */
  renew(): void {
    this.#failures = 0;
    this.#connect();
    this.#options.onUpdate();
  }

  /** The hub's time now; between connections, counted on from the last message by the wall clock. */
  now(): number {
    const live = this.#source ? this.#hubClock.now() : null;
    if (live !== null) return live;
    if (this.#lastHubTime === null || this.#lastWall === null) return this.#options.clocks.wall();
    return this.#lastHubTime + Math.max(0, this.#options.clocks.wall() - this.#lastWall);
  }

  /** How old the shown data is, in seconds; `null` before the first snapshot. */
  age(): number | null {
    return this.herd.tick === null ? null : Math.max(0, this.now() - this.herd.time);
  }

  #connect(): void {
    const { open, clocks, timers } = this.#options;
    this.#close();
    if (this.#retryTimer !== null) timers.clear(this.#retryTimer);
    this.#retryTimer = null;
    this.#hubClock.reset();
    this.#openedAt = this.#arrivedAt = this.#freshAt = clocks.monotonic();
    // A closed source may still have events under way; they belong to the past.
    const isCurrent = (): boolean => source === this.#source;
    const source = open({
      message: (change, waitedSeconds) => isCurrent() && this.#receive(change, waitedSeconds),
      own: (own) => isCurrent() && this.#receiveOwn(own),
      closed: () => isCurrent() && this.#drop("closed"),
      refused: () => isCurrent() && this.#drop("refused"),
      unreadable: () => isCurrent() && this.#drop("unreadable"),
    });
    this.#source = source;
  }

  #close(): void {
    const source = this.#source;
    this.#source = null;
    source?.close();
  }

  #drop(trouble: Trouble): void {
    const { clocks, timers, random, onUpdate } = this.#options;
    // A connection that served for a while was good: the next attempt may come soon.
    if (this.connection.phase === "live" && clocks.monotonic() - this.#openedAt > LONGEST_RETRY_SECONDS)
      this.#failures = 0;
    this.#close();
    this.connection = { phase: "down", trouble };
    const longest = Math.min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** this.#failures);
    this.#failures += 1;
    if (this.#retryTimer !== null) timers.clear(this.#retryTimer);
    this.#retryTimer = timers.set(() => this.#connect(), longest * (0.5 + random() / 2));
    onUpdate();
  }

  #receive(change: HerdChange, waitedSeconds: number): void {
    const { clocks, onUpdate } = this.#options;
    let applied: boolean;
    try {
      applied = this.herd.apply(change);
    } catch {
      // Half applied: nothing of it may be called live before the next snapshot.
      this.herd.tick = null;
      this.#drop("unreadable");
      return;
    }
    if (!applied) {
      this.#drop("gap");
      return;
    }
    this.#tickSeconds = Math.min(LONGEST_TICK_SECONDS, Math.max(0.1, change.tick_seconds));
    this.#arrivedAt = clocks.monotonic();
    this.#hubClock.observe(change.time + waitedSeconds);
    this.#lastHubTime = change.time;
    this.#lastWall = clocks.wall();
    this.#judge();
    onUpdate();
  }

  #receiveOwn(own: OwnCommands): void {
    try {
      this.herd.applyOwn(own);
    } catch {
      this.#drop("unreadable");
      return;
    }
    this.#options.onUpdate();
  }

  #watch(): void {
    const { clocks, timers, onUpdate } = this.#options;
    this.#watchTimer = timers.set(() => {
      const before = this.connection;
      this.#judge();
      // While messages come, each of them moves the ages along: drawing in between would be for nothing.
      const isQuiet = clocks.monotonic() - this.#arrivedAt > QUIET_SECONDS;
      if (isQuiet || before.phase !== this.connection.phase) onUpdate();
      this.#watch();
    }, WATCH_SECONDS);
  }

  #judge(): void {
    if (!this.#source) return;
    const age = this.#hubClock.now() === null ? null : this.age();
    const here = this.#options.clocks.monotonic();
    const silence = here - this.#arrivedAt;
    const limit = Math.max(LEAST_STALE_SECONDS, TICKS_UNTIL_STALE * this.#tickSeconds);
    const isFresh = age !== null && age <= limit && silence <= limit;
    if (isFresh) this.#freshAt = here;
    const patience = Math.max(SILENT_RECONNECT_SECONDS, 2 * limit);
    if (this.#hubClock.jumped()) this.#drop("slept");
    else if (silence > patience || here - this.#freshAt > patience) this.#drop("silent");
    else if (isFresh) this.connection = { phase: "live" };
    else if (age !== null || (this.connection.phase === "live" && silence > limit))
      this.connection = { phase: "down", trouble: "silent" };
  }
}
