/** Of which time history charts tell: as it stands in the address, and as it is moved and zoomed. Seconds throughout. */
import type { Span } from "./timeline";
import { DAY, HOUR } from "./zone";

export const PRESETS = [
  { name: "1h", seconds: HOUR },
  { name: "6h", seconds: 6 * HOUR },
  { name: "24h", seconds: DAY },
  { name: "7d", seconds: 7 * DAY },
  { name: "30d", seconds: 30 * DAY },
  { name: "90d", seconds: 90 * DAY },
  { name: "1y", seconds: 365 * DAY },
] as const;
export type PresetName = (typeof PRESETS)[number]["name"];

/** The last so many seconds, or from one moment to another. */
export type Range =
  | { readonly kind: "last"; readonly name: PresetName; readonly seconds: number }
  | ({ readonly kind: "fixed" } & Span);

export const LEAST_SECONDS = 60;
export const MOST_SECONDS = 3660 * DAY;
const LATEST = 2 ** 32;
/** How far a range may be from a preset to be taken for it. */
const CLOSE = 0.02;

/** Read what stands in the address, such as `7d` or `1763000000-1763086400`; `null` if it makes no sense. */
export function parseRange(text: string): Range | null {
  const preset = PRESETS.find(({ name }) => name === text);
  if (preset) return { kind: "last", ...preset };
  const [, from, to] = /^(\d{1,10})-(\d{1,10})$/.exec(text)?.map(Number) ?? [];
  if (from === undefined || to === undefined) return null;
  return problemOf({ from, to }) === null ? { kind: "fixed", from, to } : null;
}

export function formatRange(range: Range): string {
  return range.kind === "last" ? range.name : `${range.from}-${range.to}`;
}

export type RangeProblem = "order" | "short" | "long" | "future";

/** What is wrong with a span that someone typed; `null` if nothing is. */
export function problemOf({ from, to }: Span, now = LATEST): RangeProblem | null {
  if (from >= to) return "order";
  if (from >= now) return "future";
  if (to - from < LEAST_SECONDS) return "short";
  return to - from > MOST_SECONDS || to > LATEST ? "long" : null;
}

/** What is asked for and shown. */
export function spanOf(range: Range, now: number): Span {
  return range.kind === "last"
    ? { from: now - range.seconds, to: now }
    : { from: range.from, to: Math.min(range.to, Math.max(now, range.from + LEAST_SECONDS)) };
}

/** The range that shows a span: nothing of the future, and up to now by its name where it has one. */
export function rangeOf({ from, to }: Span, now: number): Range {
  const length = Math.min(MOST_SECONDS, Math.max(LEAST_SECONDS, to - from));
  const end = Math.min(to, now);
  const start = Math.max(0, end - length);
  const preset = PRESETS.find(({ seconds }) => Math.abs(length - seconds) <= CLOSE * seconds);
  if (preset && now - end <= CLOSE * length) return { kind: "last", ...preset };
  return { kind: "fixed", from: Math.floor(start), to: Math.ceil(end) };
}

/** The same length, half of it earlier or later. */
export function panned({ from, to }: Span, direction: 1 | -1, now: number): Range {
  const by = ((to - from) / 2) * direction;
  return rangeOf({ from: from + by, to: to + by }, now);
}

/** Twice or half as long, around a moment, which stays where it is. */
export function zoomed({ from, to }: Span, factor: number, around: number, now: number): Range {
  const at = Math.min(to, Math.max(from, around));
  return rangeOf({ from: at - (at - from) * factor, to: at + (to - at) * factor }, now);
}

/** How often a range that ends now is asked for again: not before there can be another point, and not all the time. */
export function refreshSeconds(stepSeconds: number): number {
  return Math.min(900, Math.max(10, stepSeconds));
}
