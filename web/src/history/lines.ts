/** What history charts are made of: lines on one grid, taken from the hub's answers. */
import type { Measure } from "../lib/chart";
import type { Known } from "../lib/columns";
import type { MetricSeries, Resolution, SeriesView } from "../lib/history-types";
import { type Grid, picked, type Series } from "../lib/history-series";
import type { DeviceState } from "../lib/types";

export interface HistoryLine extends Series {
  readonly key: string;
  readonly label: string;
  /** Which of the colours for lines it has. */
  readonly colour: number;
  readonly isDashed?: boolean;
  /** Of an area: whose colour and pattern it has. */
  readonly state?: DeviceState;
  /** Whose users are told at the cursor. */
  readonly uuid?: string;
}

export interface HistoryChartSpec {
  readonly key: string;
  readonly measure: Measure;
  readonly lines: readonly HistoryLine[];
  readonly isStacked?: boolean;
}

const NOTHING: readonly Known[] = [];

/** A series of an answer at some of its positions, in the chart's unit. */
export function seriesOf(told: MetricSeries | undefined, sources: readonly number[], scale: number): Series {
  return {
    mean: picked(told?.mean ?? NOTHING, sources, scale),
    low: picked(told?.low ?? NOTHING, sources, scale),
    high: picked(told?.high ?? NOTHING, sources, scale),
  };
}

/** Of what only the mean is told. */
export function meansOf(values: readonly Known[], sources: readonly number[], scale = 1): Series {
  const mean = picked(values, sources, scale);
  return { mean, low: mean, high: mean };
}

export const gridOf = ({ times, step_seconds: step }: Pick<SeriesView, "times" | "step_seconds">): Grid => ({
  times,
  step,
});

/** The coarser of two. */
export function coarser(one: Resolution, other: Resolution): Resolution {
  const order: readonly Resolution[] = ["raw", "minute", "quarter_hour"];
  return order.indexOf(one) >= order.indexOf(other) ? one : other;
}
