/** What plots of use are drawn from: scales, stacks and what is said of each step. Pure numbers, no pixels. */
import type { HourMap, UsageOverTime } from "./usage";
import type { Step } from "./usage-range";
import { dayName, timeOfDay, wallOf } from "./zone";

export type Measure = "gpu_hours" | "busy_hours";

export interface Layer {
  /** `null` is an unknown owner; "others" all that are not named. */
  readonly key: string | null;
  readonly label: string;
  readonly kind: "key" | "unknown" | "others";
  readonly values: readonly number[];
  readonly total: number;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** The largest at the bottom, all others on top; a layer without anything in it is left out. */
export function layersOf(use: UsageOverTime, measure: Measure, othersLabel: string): readonly Layer[] {
  const layers = use.keys.map((key, i): Layer => {
    const values = use[measure][i] ?? [];
    const kind = key === null ? "unknown" : "key";
    return { key, label: use.labels[i] ?? "", kind, values, total: sum(values) };
  });
  const others = measure === "gpu_hours" ? use.others_gpu_hours : use.others_busy_hours;
  layers.push({ key: "", label: othersLabel, kind: "others", values: others, total: sum(others) });
  return layers.filter(({ total }) => total > 0);
}

/** What each step has of all layers together. */
export function stepSums(layers: readonly Layer[], steps: number): readonly number[] {
  return Array.from({ length: steps }, (_, i) => sum(layers.map(({ values }) => values[i] ?? 0)));
}

const NICE = [1, 2, 2.5, 5, 10];

/** Even marks from zero to at least the greatest value: three to six of them. */
export function scaleTo(greatest: number): readonly number[] {
  if (!(greatest > 0)) return [0, 1];
  const rough = greatest / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = (NICE.find((nice) => nice * power >= rough) ?? 10) * power;
  const marks = Math.ceil(greatest / step - 1e-9);
  return Array.from({ length: marks + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}

/** Which steps carry a label, so that no more than `most` do: always at even distances. */
export function labelled(steps: number, most: number): readonly number[] {
  const every = Math.max(1, Math.ceil(steps / most));
  return Array.from({ length: Math.ceil(steps / every) }, (_, i) => i * every);
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Short, for an axis. */
export function stepLabel(at: number, step: Step, zone: string): string {
  if (step === "hour") return timeOfDay(at, zone);
  const { year, month, day } = wallOf(at, zone);
  const name = MONTHS[month - 1] ?? "";
  return step === "month" ? `${name} ${year}` : `${day} ${name}`;
}

/** In full, for a sentence. */
export function stepName(at: number, step: Step, zone: string): string {
  if (step === "hour") return `${dayName(at, zone)} ${timeOfDay(at, zone)}`;
  if (step === "month") return stepLabel(at, step, zone);
  return step === "week" ? `Week of ${dayName(at, zone)}` : dayName(at, zone);
}

export type HourMeasure = "busy" | "held" | "free";

export interface Hour {
  /** 0 is Monday. */
  readonly day: number;
  readonly hour: number;
  readonly share: number;
}

/** Of which hours something is known, most first. */
export function rankHours(map: HourMap, measure: HourMeasure): readonly Hour[] {
  const known = map[measure].flatMap((hours, day) =>
    hours.flatMap((share, hour) => (share === null ? [] : [{ day, hour, share }])),
  );
  return known.sort((a, b) => b.share - a.share);
}

/** Where the colours of the map end: a multiple of ten per cent, so that the legend has round numbers. */
export function heatTop(map: HourMap, measure: HourMeasure): number {
  const most = rankHours(map, measure)[0]?.share ?? 0;
  return Math.max(0.1, Math.ceil(most * 10 - 1e-9) / 10);
}

/** Where a key leads to in the map of hours; `null` for keys that lead nowhere. */
export function moveHour(
  day: number,
  hour: number,
  key: string,
): readonly [day: number, hour: number] | null {
  const moves: Record<string, readonly [number, number]> = {
    ArrowLeft: [day, Math.max(0, hour - 1)],
    ArrowRight: [day, Math.min(23, hour + 1)],
    ArrowUp: [Math.max(0, day - 1), hour],
    ArrowDown: [Math.min(6, day + 1), hour],
    Home: [day, 0],
    End: [day, 23],
  };
  return moves[key] ?? null;
}

/** Where a key leads to among so many steps; `null` for keys that lead nowhere. */
export function moveStep(at: number | null, steps: number, key: string): number | null {
  const from = at ?? steps;
  const moves: Record<string, number> = {
    ArrowLeft: from - 1,
    ArrowDown: from - 1,
    ArrowRight: at === null ? 0 : at + 1,
    ArrowUp: at === null ? 0 : at + 1,
    PageUp: from + 7,
    PageDown: from - 7,
    Home: 0,
    End: steps - 1,
  };
  const to = moves[key];
  return to === undefined || steps === 0 ? null : Math.min(steps - 1, Math.max(0, to));
}

/** The share of the hours in classes below a bound. */
export function shareBelow(edges: readonly number[], hours: readonly number[], bound: number): number | null {
  const all = sum(hours);
  if (all <= 0) return null;
  return sum(hours.filter((_, i) => (edges[i + 1] ?? Infinity) <= bound + 1e-9)) / all;
}
