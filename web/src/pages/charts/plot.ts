/** A uPlot chart in the page's own clothes. */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "./plot.css";
import { type ChartData, clockTime, lonePositions } from "../../lib/chart";
import type { Known } from "../../lib/columns";

export interface PlotOptions {
  readonly lines: number;
  /** What the vertical axis writes. */
  readonly number: (value: number) => string;
  readonly verticalRange: () => [number, number];
  readonly horizontalRange: () => [number, number];
  /** Charts of one group share their cursor. */
  readonly group: string;
  readonly onCursor: (position: number | null, left: number) => void;
  /** Which line the pointer is close to. */
  readonly onNear: (line: number | null) => void;
}

const HEIGHT = 148;
const SERIES_COLOURS = 8;
/** When colours repeat, the pattern tells the lines apart. */
const DASHES: (number[] | undefined)[] = [undefined, [6, 3], [2, 3], [8, 3, 2, 3]];

/** The token that colours a line. */
export function lineColour(line: number): string {
  return `var(--series-${(line % SERIES_COLOURS) + 1})`;
}

/** The pattern of a line, in pixels; none is a solid one. */
export function dashOf(line: number): number[] | undefined {
  return DASHES[Math.floor(line / SERIES_COLOURS) % DASHES.length];
}

/** Draw into `target`. The colours are those that are in force now: draw anew when the theme changes. */
export function draw(target: HTMLElement, data: ChartData, options: PlotOptions): uPlot {
  const style = getComputedStyle(target);
  const token = (name: string): string => style.getPropertyValue(name).trim();
  const font = `11px ${style.fontFamily}`;
  const axis: uPlot.Axis = {
    stroke: token("--text-quiet"),
    font,
    grid: { stroke: token("--border"), width: 1 },
    ticks: { show: false },
    gap: 6,
  };
  const isAlone = options.lines === 1;
  const plot = new uPlot(
    {
      width: Math.max(120, target.clientWidth),
      height: HEIGHT,
      padding: [8, 16, 0, 0],
      legend: { show: false },
      focus: { alpha: 0.2 },
      cursor: {
        y: false,
        drag: { x: false, y: false },
        sync: { key: options.group, setSeries: false },
        points: { size: 7, width: 1.5 },
        focus: { prox: isAlone ? -1 : 20 },
      },
      scales: {
        x: { time: true, range: () => options.horizontalRange() },
        y: { range: () => options.verticalRange() },
      },
      axes: [
        {
          ...axis,
          size: 26,
          space: 64,
          grid: { show: false },
          values: (_, times) => times.map((time) => clockTime(time)),
          incrs: [60, 120, 300],
        },
        { ...axis, size: 40, space: 24, values: (_, values) => values.map(options.number) },
      ],
      series: [
        {},
        ...Array.from({ length: options.lines }, (_, line): uPlot.Series => {
          const colour = token(`--series-${(line % SERIES_COLOURS) + 1}`);
          const dash = dashOf(line);
          return {
            stroke: colour,
            width: 1.5,
            points: {
              show: false,
              size: 4,
              fill: colour,
              filter: ({ data: [, ...lines] }, position) =>
                lonePositions((lines[position - 1] ?? []) as Known[]),
            },
            ...(dash ? { dash } : {}),
            ...(isAlone ? { fill: `${colour}24` } : {}),
          };
        }),
      ],
      hooks: {
        setCursor: [({ cursor }) => options.onCursor(cursor.idx ?? null, cursor.left ?? -1)],
        setSeries: [
          (_, line, change) => {
            // Its types leave the focus out, which is what a pointer near a line changes.
            if ("focus" in change) options.onNear(line === null ? null : line - 1);
          },
        ],
      },
    },
    data as uPlot.AlignedData,
    target,
  );
  return plot;
}
