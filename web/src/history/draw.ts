/** A uPlot chart of the past: lines with bands, or areas on top of each other. */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "../pages/charts/plot.css";
import "./draw.css";
import { lonePositions } from "../lib/chart";
import type { Known } from "../lib/columns";
import type { Tick } from "../lib/history-time";
import type { Span } from "../lib/timeline";

/** Times, then one column for each stroke. */
export type Columns = [times: number[], ...columns: Known[][]];
type Fill = string | CanvasPattern;

export interface StrokeLook {
  /** "" for what only bounds a band. */
  readonly colour: string;
  readonly dash?: number[] | undefined;
  /** Below it, down to nothing. */
  readonly fill?: Fill | undefined;
}

export interface BandLook {
  /** Positions of strokes. */
  readonly upper: number;
  readonly lower: number;
  readonly fill: Fill;
}

export interface Drawing {
  readonly strokes: readonly StrokeLook[];
  readonly bands: readonly BandLook[];
  readonly span: () => Span;
  readonly ticks: (most: number) => readonly Tick[];
  readonly verticalRange: () => [number, number];
  readonly number: (value: number) => string;
  /** The position that the mouse points at. */
  readonly onCursor: (position: number | null) => void;
  readonly onSelect: (span: Span) => void;
  readonly onReset: () => void;
}

export const HEIGHT = 168;
/** Of the vertical axis, and right of the plot. */
export const AXIS_PIXELS = 44;
export const MARGIN_PIXELS = 14;
const TICK_PIXELS = 74;
/** A drag that is shorter was meant to be a click. */
const LEAST_PIXELS = 5;

/** Draw into `target`. The colours are those that are in force now: draw anew when the theme changes. */
export function draw(target: HTMLElement, columns: Columns, drawing: Drawing): uPlot {
  const style = getComputedStyle(target);
  const token = (name: string): string => style.getPropertyValue(name).trim();
  const axis: uPlot.Axis = {
    stroke: token("--text-quiet"),
    font: `11px ${style.fontFamily}`,
    grid: { stroke: token("--border"), width: 1 },
    ticks: { show: false },
    gap: 6,
  };
  const ticks = (plot: uPlot): readonly Tick[] =>
    drawing.ticks((plot.width - AXIS_PIXELS - MARGIN_PIXELS) / TICK_PIXELS);
  const isLine = (series: number): boolean => drawing.strokes[series - 1]?.colour !== "";
  return new uPlot(
    {
      width: Math.max(120, target.clientWidth),
      height: HEIGHT,
      padding: [8, MARGIN_PIXELS, 0, 0],
      legend: { show: false },
      focus: { alpha: 0.2 },
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false },
        points: {
          size: (_, series) => (isLine(series) ? 7 : 0),
          width: (_, series) => (isLine(series) ? 1.5 : 0),
        },
        bind: {
          dblclick: () => () => {
            drawing.onReset();
            return null;
          },
        },
      },
      scales: {
        x: { time: true, range: () => [drawing.span().from, drawing.span().to] },
        y: { range: () => drawing.verticalRange() },
      },
      axes: [
        {
          ...axis,
          size: 26,
          splits: (plot) => ticks(plot).map(({ at }) => at),
          values: (plot) => ticks(plot).map(({ label }) => label),
        },
        { ...axis, size: AXIS_PIXELS, space: 26, values: (_, values) => values.map(drawing.number) },
      ],
      series: [
        {},
        ...drawing.strokes.map(({ colour, dash, fill }): uPlot.Series => ({
          stroke: colour || "transparent",
          width: colour ? 1.5 : 0,
          spanGaps: false,
          points: {
            show: false,
            size: 4,
            fill: colour || "transparent",
            filter: ({ data: [, ...all] }, position) => lonePositions((all[position - 1] ?? []) as Known[]),
          },
          ...(dash && { dash }),
          ...(fill !== undefined && { fill: () => fill }),
        })),
      ],
      bands: drawing.bands.map(({ upper, lower, fill }) => ({
        series: [upper + 1, lower + 1],
        fill: () => fill,
      })),
      hooks: {
        setCursor: [({ cursor }) => drawing.onCursor((cursor.left ?? -1) < 0 ? null : (cursor.idx ?? null))],
        setSelect: [
          (plot) => {
            const { left, width } = plot.select;
            if (width === 0) return;
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            if (width < LEAST_PIXELS) return;
            drawing.onSelect({ from: plot.posToVal(left, "x"), to: plot.posToVal(left + width, "x") });
          },
        ],
      },
    },
    columns as uPlot.AlignedData,
    target,
  );
}
