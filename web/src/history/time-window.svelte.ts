/** The time that all charts of a page show: read from the address, moved by whoever looks, held while someone drags. */
import {
  formatRange,
  panned,
  parseRange,
  type Range,
  rangeOf,
  refreshSeconds,
  spanOf,
  zoomed,
} from "../lib/history-range";
import type { Route } from "../lib/route.svelte";
import type { Span } from "../lib/timeline";
import { zones } from "../lib/zone-choice.svelte";
import { spanText } from "../lib/zone";
import type { Looking, TimeControls } from "./time-controls";
import { words } from "./history-words";

export class TimeWindow implements TimeControls {
  readonly #route: Route;
  readonly #usual: "live" | "24h";
  readonly #now: () => number;
  #looking = $state.raw<Looking | null>(null);
  #span = $state.raw<Span>({ from: 0, to: 1 });
  #isHeld = false;

  constructor(route: Route, usual: "live" | "24h", now: () => number) {
    this.#route = route;
    this.#usual = usual;
    this.#now = now;
  }

  /** `null` if what the address asks for makes no sense. */
  get range(): Range | null {
    return parseRange(this.#route.place.range || this.#usual);
  }

  /** What is shown: the range as it was when its numbers were last asked for. */
  get span(): Span {
    return this.#span;
  }

  get zone(): string {
    return zones.current;
  }

  get looking(): Looking | null {
    return this.#looking;
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  get rangeText(): string {
    const { from, to } = this.#span;
    return spanText(from, to, this.zone, this.#now());
  }

  /** As a heading. */
  get title(): string {
    const { range } = this;
    return range?.kind === "last" ? words.range.last[range.name] : this.rangeText;
  }

  /** How often what is shown is to be asked for again, in seconds; `null` if it does not end now. */
  refresh(step: number | undefined): number | null {
    return this.range?.kind === "last" ? refreshSeconds(step ?? 60) : null;
  }

  /** Take the range as it is now, to ask for it; gives `null` if there is nothing to ask for. */
  take(): Span | null {
    const { range } = this;
    if (!range) return null;
    return (this.#span = spanOf(range, this.#now()));
  }

  look(looking: Looking | null): void {
    this.#looking = looking;
  }

  select(span: Span): void {
    this.#go(rangeOf(span, this.#now()));
  }

  /** Back to where one came from: a zoom is an entry in the browser's history. */
  reset(): void {
    if (this.range?.kind === "fixed") history.back();
  }

  pan(direction: number): void {
    this.#go(panned(this.#span, direction < 0 ? -1 : 1, this.#now()));
  }

  zoom(factor: number, around: number): void {
    this.#go(zoomed(this.#span, factor, around, this.#now()));
  }

  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
  }

  #go(range: Range): void {
    this.#looking = null;
    this.#route.go({ range: formatRange(range) });
  }
}
