/** Times on the axes of history charts, and how long things are, in words. */
import { snap, type Span } from "./timeline";
import { DAY, dayText, HOUR, momentOf, momentText, startOfDay, timeOfDay, wallOf } from "./zone";

export interface Tick {
  readonly at: number;
  readonly label: string;
}

const MINUTE = 60;
const SHORT_STEPS = [1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE);
const HOUR_STEPS = [1, 2, 3, 6, 12].map((hours) => hours * HOUR);
const DAY_STEPS = [1, 2, 4, 7, 14];
const MONTH_STEPS = [1, 2, 3, 6, 12, 24];
const MONTH = 30.4 * DAY;

/** Round local times in a span, as many as there is room for. */
export function ticksOf(span: Span, zone: string, most: number): Tick[] {
  const least = (span.to - span.from) / Math.max(1, most);
  const step = [...SHORT_STEPS, ...HOUR_STEPS].find((seconds) => seconds >= least);
  if (step !== undefined) return within(span, clockTicks(span, zone, step));
  const days = DAY_STEPS.find((count) => count * DAY >= least);
  if (days !== undefined) return within(span, dayTicks(span, zone, days));
  return within(span, monthTicks(span, zone, MONTH_STEPS.find((count) => count * MONTH >= least) ?? 60));
}

const within = ({ from, to }: Span, ticks: Tick[]): Tick[] =>
  ticks.filter(({ at }) => at >= from && at <= to);

function clockTicks({ from, to }: Span, zone: string, step: number): Tick[] {
  const ticks: Tick[] = [];
  // A night on which clocks are changed has its hours elsewhere: each is looked for anew.
  for (
    let at = snap(from, step, zone);
    at <= to;
    at = Math.max(at + MINUTE, snap(at + 1.5 * step, step, zone))
  )
    ticks.push({ at, label: isMidnight(at, zone) ? dayLabel(at, zone) : timeOfDay(at, zone) });
  return ticks;
}

const isMidnight = (at: number, zone: string): boolean => {
  const { hour, minute } = wallOf(at, zone);
  return hour === 0 && minute === 0;
};

function dayTicks({ from, to }: Span, zone: string, step: number): Tick[] {
  const ticks: Tick[] = [];
  // Counted from a fixed day, so that they stay where they are when the span moves.
  const skipped = Math.floor(Date.parse(dayText(from, zone)) / 1000 / DAY) % step;
  for (let at = startOfDay(from, zone, -skipped); at <= to; at = startOfDay(at, zone, step))
    ticks.push({ at, label: dayLabel(at, zone) });
  return ticks;
}

function monthTicks({ from, to }: Span, zone: string, step: number): Tick[] {
  const ticks: Tick[] = [];
  const { year, month } = wallOf(from, zone);
  for (let months = Math.floor((year * 12 + month - 1) / step) * step; ; months += step) {
    const at = momentOf(
      { year: Math.floor(months / 12), month: (months % 12) + 1, day: 1, hour: 0, minute: 0 },
      zone,
    );
    if (at > to) return ticks;
    const name = MONTHS[months % 12] ?? "";
    ticks.push({ at, label: months % 12 === 0 ? `${name} ${Math.floor(months / 12)}` : name });
  }
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Such as "16 Nov". */
function dayLabel(at: number, zone: string): string {
  const { month, day } = wallOf(at, zone);
  return `${day} ${MONTHS[month - 1]}`;
}

const UNITS = [
  [7 * DAY, "week"],
  [DAY, "day"],
  [HOUR, "h"],
  [MINUTE, "min"],
] as const;

/** A round length, such as "15 min", "1 day" or "2 weeks". */
export function lengthText(seconds: number): string {
  for (const [unit, name] of UNITS) {
    const count = seconds / unit;
    if (count >= 1 && Number.isInteger(count))
      return `${count} ${name}${name.length > 3 && count > 1 ? "s" : ""}`;
  }
  return `${Math.round(seconds * 10) / 10} s`;
}

/** What one point stands for: a moment where steps are short, otherwise from when to when. */
export function stepText(from: number, step: number, zone: string, now: number): string {
  if (step < MINUTE)
    return `${momentText(from, zone, now)}:${String(Math.floor(from % 60)).padStart(2, "0")}`;
  if (step >= DAY && step % DAY === 0) {
    const last = from + step - 1;
    const [first, end] = [momentText(from, zone, now), momentText(last, zone, now)].map((text) =>
      text.slice(0, -6),
    );
    return first === end ? (first ?? "") : `${first} – ${end}`;
  }
  const to = from + step;
  const end = dayText(from, zone) === dayText(to, zone) ? timeOfDay(to, zone) : momentText(to, zone, now);
  return `${momentText(from, zone, now)} – ${end}`;
}
