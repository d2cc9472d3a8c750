/** What is drawn and in which words: everything about charts that needs no canvas. */
import type { Known } from "./columns";
import { type Minutes, STEP_SECONDS, WINDOW_SECONDS } from "./recent";
import { strings } from "./strings";

/** One kind of number as a chart shows it. */
export interface Measure {
  readonly title: string;
  readonly unit: string;
  /** What one of the chart's unit is in ours. */
  readonly scale: number;
  readonly digits: 0 | 1;
  /** The least that the vertical axis shows, in the chart's unit; lines above it stretch the axis. */
  readonly low: number;
  readonly high: number;
}

export interface Line {
  readonly key: string;
  readonly label: string;
}

/** In the chart's unit; lines, in the order in which they are drawn. */
export type ChartData = [times: number[], ...lines: Known[][]];

export interface LineSummary {
  readonly label: string;
  readonly last: Known;
  readonly low: Known;
  readonly high: Known;
}

const formats = [0, 1].map(
  (digits) => new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }),
);
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const clockWithSeconds = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

/** A value in the chart's unit, with the unit. */
export function formatValue(
  value: Known | undefined,
  { unit, digits }: Pick<Measure, "unit" | "digits">,
): string {
  if (value === null || value === undefined) return strings.unknownValue;
  return `${formats[digits]?.format(value) ?? value} ${unit}`;
}

/** In the viewer's zone. */
export function clockTime(epochSeconds: number, { seconds = false } = {}): string {
  return (seconds ? clockWithSeconds : clock).format(epochSeconds * 1000);
}

/** How far the vertical axis goes: at least the measure's own ends, further if a line does. */
export function verticalRange(
  data: ChartData,
  { low, high }: Pick<Measure, "low" | "high">,
): [number, number] {
  let most = high;
  let least = low;
  for (const line of data.slice(1))
    for (const value of line) {
      if (value === null) continue;
      if (value > most) most = value;
      if (value < least) least = value;
    }
  return [least, most];
}

/** What the horizontal axis shows at least: less would make noise look like news. */
const LEAST_SPAN_SECONDS = 120;

/** The first moment of which anything is known; `null` if there is none. */
export function firstKnown({ times, lines }: Minutes): Known {
  let first = times.length;
  for (const line of lines.values()) {
    const position = line.findIndex((value) => value !== null);
    if (position >= 0 && position < first) first = position;
  }
  return times[first] ?? null;
}

/** Whether the charts are still short of what they will show, since nothing older than `first` is known. */
export function isFillingUp(first: Known, now: number): boolean {
  return first !== null && first > now - WINDOW_SECONDS + 2 * STEP_SECONDS;
}

/** How far the horizontal axis goes: as far as anything is known, within reason. */
export function horizontalRange(first: Known, now: number): [number, number] {
  if (!isFillingUp(first, now)) return [now - WINDOW_SECONDS, now];
  return [Math.min(first ?? now, now - LEAST_SPAN_SECONDS), now];
}

/** Where each line is and was, for those who cannot see it. */
export function summarize(data: ChartData, lines: readonly Line[]): LineSummary[] {
  return lines.map(({ label }, i) => {
    const known = (data[i + 1] ?? []).filter((value): value is number => value !== null);
    return {
      label,
      last: data[i + 1]?.at(-1) ?? null,
      low: known.length > 0 ? Math.min(...known) : null,
      high: known.length > 0 ? Math.max(...known) : null,
    };
  });
}

/** One line at the cursor. */
export interface PointedLine {
  readonly label: string;
  readonly line: number;
  readonly value: Known;
}

/** What the lines say at a position, highest first. Of several, those that say nothing are left out. */
export function valuesAt(
  data: ChartData,
  lines: readonly Line[],
  position: number,
  isShown: (line: number) => boolean,
): PointedLine[] {
  return lines
    .map(({ label }, line) => ({ label, line, value: data[line + 1]?.[position] ?? null }))
    .filter(({ line, value }) => isShown(line) && (value !== null || lines.length === 1))
    .sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
}

/** One value, or from the lowest to the highest. */
export function spanOf(values: readonly PointedLine[], measure: Pick<Measure, "unit" | "digits">): string {
  const known = values.flatMap(({ value }) => value ?? []);
  if (known.length === 0) return strings.unknownValue;
  const least = formatValue(Math.min(...known), measure);
  const most = formatValue(Math.max(...known), measure);
  return least === most ? most : `${least.replace(` ${measure.unit}`, "")} – ${most}`;
}

/** The lines in the chart's unit. */
export function chartData(
  minutes: Minutes,
  lines: readonly Line[],
  { scale }: Pick<Measure, "scale">,
): ChartData {
  return [
    [...minutes.times],
    ...lines.map(({ key }) =>
      (minutes.lines.get(key) ?? minutes.times.map(() => null)).map((value) =>
        value === null ? null : value / scale,
      ),
    ),
  ];
}

/** Values with nothing on either side: no line leads to them, so they are drawn as points. */
export function lonePositions(line: readonly Known[]): number[] {
  const known = (position: number): boolean => (line[position] ?? null) !== null;
  return line.flatMap((_, i) => (known(i) && !known(i - 1) && !known(i + 1) ? [i] : []));
}
