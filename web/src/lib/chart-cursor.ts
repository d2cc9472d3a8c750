/** Where the cursor of the charts is when a key or a finger put it there. */

/** A time, or now, which moves along with the lines. */
export type ChartMoment = number | "now";

const MINUTE_SECONDS = 60;

/** The position whose time is nearest; `null` where there is none at all. */
export function positionOf(times: readonly number[], moment: ChartMoment): number | null {
  if (times.length === 0) return null;
  if (moment === "now") return times.length - 1;
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) < moment) low = middle + 1;
    else high = middle;
  }
  const before = times[low - 1];
  return before !== undefined && moment - before < (times[low] ?? Infinity) - moment ? low - 1 : low;
}

/** The moment at a position; the last one is now. */
export function momentAt(times: readonly number[], position: number): ChartMoment {
  return position >= times.length - 1 ? "now" : (times[Math.max(0, position)] ?? "now");
}

/** Where a key leads to from a moment; `null` for keys that lead nowhere. */
export function stepMoment(times: readonly number[], from: ChartMoment, key: string): ChartMoment | null {
  const position = positionOf(times, from);
  if (position === null) return null;
  const time = times[position] ?? 0;
  const steps: Record<string, () => ChartMoment> = {
    ArrowLeft: () => momentAt(times, position - 1),
    ArrowRight: () => momentAt(times, position + 1),
    PageDown: () => momentAt(times, Math.min(position - 1, positionOf(times, time - MINUTE_SECONDS) ?? 0)),
    PageUp: () => momentAt(times, Math.max(position + 1, positionOf(times, time + MINUTE_SECONDS) ?? 0)),
    Home: () => momentAt(times, 0),
    End: () => "now",
  };
  return steps[key]?.() ?? null;
}
