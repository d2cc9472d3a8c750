/** Of which time use is counted: whole days or months in a zone, and the time before it to compare with. */
import { addDays, DAY, dayText, HOUR, momentOf, readDay, startOfDay, wallOf } from "./zone";

export const RANGES = ["7d", "30d", "90d", "month", "last-month", "year"] as const;
export type RangeName = (typeof RANGES)[number];
export const STEPS = ["hour", "day", "week", "month"] as const;
export type Step = (typeof STEPS)[number];

export interface Stretch {
  readonly from: number;
  readonly to: number;
}

export interface Range extends Stretch {
  /** As long as this one and right before it, up to the same time of day; of a month, the month before. */
  readonly before: Stretch;
}

const LENGTHS: Partial<Record<RangeName, number>> = { "7d": 7, "30d": 30, "90d": 90, year: 365 };
const MOST_DAYS = 3660;
const MOST_COLUMNS = 100;
const STEP_SECONDS: Record<Step, number> = { hour: HOUR, day: DAY, week: 7 * DAY, month: 30.4 * DAY };

/** Two days as they stand in the address, such as 2026-10-01_2026-10-14: both are counted. */
export const customText = (first: string, last: string): string => `${first}_${last}`;

/** The two days of a range that someone chose by hand; `null` if it is another one, or makes no sense. */
export function customDays(text: string): readonly [first: string, last: string] | null {
  const [, first, last] = /^(\d{4}-\d\d-\d\d)_(\d{4}-\d\d-\d\d)$/.exec(text) ?? [];
  if (first === undefined || last === undefined) return null;
  const [from, to] = [readDay(first, "UTC"), readDay(last, "UTC")];
  return from === null || to === null || to < from || to - from > MOST_DAYS * DAY ? null : [first, last];
}

export function isRange(text: string): boolean {
  return RANGES.some((name) => name === text) || customDays(text) !== null;
}

/** What a range means at a moment. Whatever ends today ends now: the rest of the day is not known to be idle. */
export function rangeOf(text: string, zone: string, now: number): Range {
  const { year, month } = wallOf(now, zone);
  const monthStart = (back: number): number =>
    momentOf({ year, month: month - back, day: 1, hour: 0, minute: 0 }, zone);
  if (text === "month") {
    const [from, before] = [monthStart(0), monthStart(1)];
    const wall = wallOf(now, zone);
    const sameTime = momentOf({ ...wall, month: month - 1 }, zone);
    return { from, to: now, before: { from: before, to: Math.min(from, sameTime) } };
  }
  if (text === "last-month") {
    const [from, before] = [monthStart(1), monthStart(2)];
    return { from, to: monthStart(0), before: { from: before, to: from } };
  }
  const custom = customDays(text);
  const chosen = custom && daysOf(custom, zone, now);
  if (chosen) return chosen;
  const days = LENGTHS[text as RangeName] ?? 30;
  return withBefore(startOfDay(now, zone, 1 - days), now, days, zone);
}

function daysOf([first, last]: readonly [string, string], zone: string, now: number): Range | null {
  const from = readDay(first, zone);
  const lastDay = readDay(last, zone);
  if (from === null || lastDay === null || from >= now) return null;
  const days = Math.round((lastDay - from) / DAY) + 1;
  return withBefore(from, Math.min(now, startOfDay(lastDay, zone, 1)), days, zone);
}

const withBefore = (from: number, to: number, days: number, zone: string): Range => ({
  from,
  to,
  before: { from: addDays(from, -days, zone), to: addDays(to, -days, zone) },
});

/** Steps in which a range can be drawn, finest first; the first is what is usual. */
export function stepsOf({ from, to }: Stretch): readonly Step[] {
  const columns = (step: Step): number => (to - from) / STEP_SECONDS[step];
  const fitting = STEPS.filter((step) => columns(step) <= MOST_COLUMNS && columns(step) >= 1.5);
  return fitting.length > 0 ? fitting : ["day"];
}

/** Months to have a report of, latest first, as 2026-11: this one, and those since `since`. */
export function monthsOf(now: number, zone: string, since: number, most = 36): readonly string[] {
  const { year, month } = wallOf(now, zone);
  const months: string[] = [];
  for (let back = 0; back < most; back += 1) {
    const start = momentOf({ year, month: month - back, day: 1, hour: 0, minute: 0 }, zone);
    months.push(dayText(start, zone).slice(0, 7));
    if (start <= since) break;
  }
  return months;
}
