/** What a chart can do to the time that all charts of a page show, and which key does it. */
import { type Grid, stepAt } from "../lib/history-series";
import type { Span } from "../lib/timeline";

/** Where someone looks. */
export interface Looking {
  readonly time: number;
  /** On which chart. */
  readonly chart: string;
  /** By a key or a finger, which leave the cursor where it is; not by a mouse. */
  readonly isByKey: boolean;
}

export interface TimeControls {
  /** The range in words, for pictures. */
  readonly rangeText: string;
  look(looking: Looking | null): void;
  select(span: Span): void;
  reset(): void;
  pan(direction: number, around: number): void;
  zoom(factor: number, around: number): void;
  /** Whether something is being dragged, which news must not disturb. */
  hold(isHeld: boolean): void;
}

export type CursorAction =
  | { readonly kind: "look"; readonly time: number }
  | { readonly kind: "leave" }
  | { readonly kind: "pan" | "zoom"; readonly by: number };

const LEAP = 10;

/** What a key asks for; `null` for keys that mean nothing here. */
export function cursorKey(
  { key, shiftKey }: Pick<KeyboardEvent, "key" | "shiftKey">,
  grid: Grid,
  span: Span,
  time: number | null,
): CursorAction | null {
  if (key === "Escape") return { kind: "leave" };
  if (key === "+" || key === "=") return { kind: "zoom", by: 0.5 };
  if (key === "-") return { kind: "zoom", by: 2 };
  if (shiftKey && key === "ArrowLeft") return { kind: "pan", by: -1 };
  if (shiftKey && key === "ArrowRight") return { kind: "pan", by: 1 };
  const last = grid.times.length - 1;
  const from = stepAt(grid, time ?? span.to);
  if (from === null) return null;
  const start = time === null ? last : from;
  const to = (
    {
      ArrowLeft: start - 1,
      ArrowRight: start + 1,
      PageDown: start - LEAP,
      PageUp: start + LEAP,
      Home: 0,
      End: last,
    } as Record<string, number>
  )[key];
  if (to === undefined) return null;
  const at = grid.times[Math.min(last, Math.max(0, to))] ?? span.to;
  return { kind: "look", time: at + grid.step / 2 };
}
