/** The bookings of what is seen, as the hub told them last. */
import { type Calendar, NO_CALENDAR, readTimeline, type TimelineView } from "../lib/booking";
import { request, wordsOf } from "../lib/request";
import { isWithin, type Span } from "../lib/timeline";

export class CalendarFeed {
  #calendar = $state.raw<Calendar>(NO_CALENDAR);
  #error = $state<string | null>(null);
  /** Of which time the bookings are known. */
  #told = $state.raw<Span | null>(null);
  #span: Span | null = null;
  #abort: AbortController | null = null;
  #again = 0;
  #askedAt = 0;

  get calendar(): Calendar {
    return this.#calendar;
  }

  /** Why what is shown may be old; `null` if it is not. */
  get error(): string | null {
    return this.#error;
  }

  /** Whether the bookings of a span were told yet; before that, nobody knows what is free in it. */
  covers(span: Span): boolean {
    return isWithin(span, this.#told);
  }

  /** Ask for a span now. What is shown stays until the answer is there. */
  async load({ from, to }: Span): Promise<void> {
    this.stop();
    this.#span = { from, to };
    this.#askedAt = performance.now();
    const abort = (this.#abort = new AbortController());
    try {
      const query = { since: from, until: to };
      const answer = await request<TimelineView>("GET", "timeline", { query, signal: abort.signal });
      this.#calendar = readTimeline(answer);
      this.#error = null;
      this.#told = { from, to };
    } catch (error) {
      if (abort.signal.aborted) return;
      this.#error = wordsOf(error);
    }
    this.#later(REFRESH_MILLISECONDS);
  }

  /** Something was booked: look again, but not more often than every few seconds. */
  renew(): void {
    this.#later(Math.max(0, this.#askedAt + PAUSE_MILLISECONDS - performance.now()));
  }

  stop(): void {
    clearTimeout(this.#again);
    this.#abort?.abort();
  }

  #later(milliseconds: number): void {
    clearTimeout(this.#again);
    this.#again = window.setTimeout(() => {
      if (!this.#span) return;
      // Nobody looks: not now, but soon.
      if (document.visibilityState === "hidden") this.#later(PAUSE_MILLISECONDS);
      else void this.load(this.#span);
    }, milliseconds);
  }
}

/** What others book is told by the stream as far as it is near; the rest is looked up now and then. */
const REFRESH_MILLISECONDS = 60_000;
const PAUSE_MILLISECONDS = 2_000;
