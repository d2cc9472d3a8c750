/** Something that was asked of the hub: the answer, what it was asked for, and what went wrong. */
import { untrack } from "svelte";
import { request, type RequestOptions, wordsOf } from "../lib/request";

export interface Question {
  readonly path: string;
  readonly query: NonNullable<RequestOptions["query"]>;
}

export class Reading<Answer> {
  #answer = $state.raw<Answer | null>(null);
  #error = $state<string | null>(null);
  #isLoading = $state(false);
  #asked = "";
  #abort: AbortController | null = null;

  /** The last one that came; it stays while the next one is on its way. */
  get answer(): Answer | null {
    return this.#answer;
  }

  get error(): string | null {
    return this.#error;
  }

  get isLoading(): boolean {
    return this.#isLoading;
  }

  /** Ask. `kind` tells questions of different things apart: the answer to another one does not stay. */
  async ask({ path, query }: Question, kind: string): Promise<void> {
    this.#abort?.abort();
    const abort = (this.#abort = new AbortController());
    if (kind !== this.#asked) this.#answer = null;
    this.#asked = kind;
    this.#isLoading = true;
    try {
      this.#answer = await request<Answer>("GET", path, { query, signal: abort.signal });
      this.#error = null;
    } catch (error) {
      if (abort.signal.aborted) return;
      this.#error = wordsOf(error);
    }
    this.#isLoading = false;
  }

  /** Forget what was told: it is not asked for any more. */
  clear(): void {
    this.stop();
    this.#answer = null;
    this.#error = null;
    this.#isLoading = false;
    this.#asked = "";
  }

  stop(): void {
    this.#abort?.abort();
  }
}

interface Following {
  /** What is asked for; when it changes it is asked for at once. */
  readonly kind: () => string;
  readonly load: () => void;
  readonly readings: readonly Reading<unknown>[];
  /** How often what ends now is asked for again; `null` for what does not change any more. */
  readonly seconds: () => number | null;
  /** Whether news would disturb. */
  readonly isHeld: () => boolean;
}

/** Ask when something else is wanted, and now and then again while someone looks. For a component that is being made. */
export function follow({ kind, load, readings, seconds, isHeld }: Following): void {
  $effect(() => {
    kind();
    untrack(load);
    return () => readings.forEach((reading) => reading.stop());
  });
  $effect(() => {
    const pause = seconds();
    if (pause === null || readings.some(({ isLoading }) => isLoading)) return;
    let timer = 0;
    const wait = (milliseconds: number): void => {
      timer = window.setTimeout(() => {
        if (document.visibilityState === "hidden" || isHeld()) wait(LOOK_MILLISECONDS);
        else load();
      }, milliseconds);
    };
    wait(pause * 1000);
    return () => clearTimeout(timer);
  });
}

const LOOK_MILLISECONDS = 1000;
