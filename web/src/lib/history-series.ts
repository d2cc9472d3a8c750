/** Series as charts draw them: on one grid, with gaps as gaps. Nothing here makes up a number. */
import type { Known } from "./columns";

/** Steps of one length; `times` are where they begin. Each point stands for its whole step. */
export interface Grid {
  readonly times: readonly number[];
  readonly step: number;
}

/** Mean, least and greatest of each step, in the chart's unit; `null` is unknown. */
export interface Series {
  readonly mean: readonly Known[];
  readonly low: readonly Known[];
  readonly high: readonly Known[];
}

export const NO_GRID: Grid = { times: [], step: 1 };

/** Steps that were left out, as steps of which nothing is known: a line must not be drawn across them. */
export function withGaps(grid: Grid): { readonly grid: Grid; readonly sources: readonly number[] } {
  const times: number[] = [];
  const sources: number[] = [];
  grid.times.forEach((time, i) => {
    const last = times.at(-1);
    if (last !== undefined && time - last > 1.5 * grid.step) {
      times.push(last + grid.step);
      sources.push(-1);
    }
    times.push(time);
    sources.push(i);
  });
  return { grid: { times, step: grid.step }, sources };
}

/** Values in the chart's unit, at the positions that `sources` names; -1 is a gap. */
export function picked(values: readonly Known[], sources: readonly number[], scale = 1): Known[] {
  return sources.map((i) => {
    const value = values[i] ?? null;
    return value === null ? null : value / scale;
  });
}

/** The positions in `source`, shifted by so many seconds, of the steps that hold the middles of another grid's; -1: none. */
export function ontoGrid(source: Grid, target: Grid, shiftSeconds = 0): number[] {
  return target.times.map((time) => {
    const middle = time + target.step / 2 - shiftSeconds;
    const i = lastBefore(source.times, middle);
    return i >= 0 && middle < (source.times[i] ?? 0) + source.step ? i : -1;
  });
}

/** The last position whose time is not later; -1 if there is none. */
function lastBefore(times: readonly number[], time: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? Infinity) <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The step that holds a moment, or the nearest one; `null` on an empty grid. */
export function stepAt({ times, step }: Grid, time: number): number | null {
  if (times.length === 0) return null;
  const before = lastBefore(times, time);
  if (before < 0) return 0;
  const next = times[before + 1];
  const end = (times[before] ?? 0) + step;
  return next !== undefined && time >= end && next - time < time - end ? before + 1 : before;
}

/** Where points are drawn: in the middle of what they stand for. */
export const middles = ({ times, step }: Grid): number[] => times.map((time) => time + step / 2);

/** How far values reach. */
export function reachOf(columns: readonly (readonly Known[])[], low: number, high: number): [number, number] {
  let least = low;
  let most = high;
  for (const column of columns)
    for (const value of column) {
      if (value === null) continue;
      if (value < least) least = value;
      if (value > most) most = value;
    }
  return [least, most];
}

/** Columns on top of each other. Where none is known there is a gap; one that is unknown alone adds nothing. */
export function stacked(columns: readonly (readonly Known[])[]): Known[][] {
  const length = Math.max(0, ...columns.map((column) => column.length));
  const sums = Array.from({ length }, (_, i): Known =>
    columns.some((column) => (column[i] ?? null) !== null) ? 0 : null,
  );
  return columns.map((column) =>
    sums.map((sum, i) => (sum === null ? null : (sums[i] = sum + (column[i] ?? 0)))),
  );
}

export interface Summary {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
  /** How much of the range is known, 0 to 1. */
  readonly known: number;
}

/** A line in a few numbers; `null` if nothing of it is known. Steps are equally long, so the mean of means is the mean. */
export function summaryOf({ mean, low, high }: Series): Summary | null {
  const known = mean.filter((value): value is number => value !== null);
  if (known.length === 0) return null;
  const [least, most] = reachOf([mean, low, high], Infinity, -Infinity);
  return {
    mean: known.reduce((sum, value) => sum + value, 0) / known.length,
    low: least,
    high: most,
    known: known.length / mean.length,
  };
}

/** When the first value of any column begins and the last one ends; `null` if there is none. */
export function knownSpan(
  { times, step }: Grid,
  columns: readonly (readonly Known[])[],
): { from: number; to: number } | null {
  const isKnown = (i: number): boolean => columns.some((column) => (column[i] ?? null) !== null);
  let first = 0;
  while (first < times.length && !isKnown(first)) first += 1;
  let last = times.length - 1;
  while (last > first && !isKnown(last)) last -= 1;
  const [from, to] = [times[first], times[last]];
  return from === undefined || to === undefined ? null : { from, to: to + step };
}

/** Whether the band would say anything that the line does not. */
export const hasBand = ({ mean, low, high }: Series): boolean =>
  mean.some((value, i) => value !== null && (low[i] ?? value) < (high[i] ?? value));
