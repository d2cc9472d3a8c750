/** Where every device stands on the heat map: nodes in a grid, in each of them its devices in lines. CSS pixels. */

export interface HeatLayout {
  readonly width: number;
  readonly height: number;
  readonly cellWidth: number;
  readonly cellHeight: number;
  readonly hasLabels: boolean;
  /** The corner of every cell, in the order of the nodes and their devices. */
  readonly x: Float32Array;
  readonly y: Float32Array;
  readonly nodes: readonly HeatNode[];
}

export interface HeatNode {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  /** Its first cell and how many it has. */
  readonly first: number;
  readonly count: number;
}

export const LABEL_HEIGHT = 16;
const LONGEST_LINE = 8;
const LEAST_LABEL_WIDTH = 48;

interface Size {
  readonly cell: number;
  readonly gap: number;
  readonly hasLabels: boolean;
}
/** From comfortable to dense; the first that fits is taken, the last in any case. */
const SIZES: readonly Size[] = [
  ...[22, 20, 18, 16, 14, 12, 10, 8].map((cell) => ({ cell, gap: 2, hasLabels: true })),
  ...[10, 8, 7].map((cell) => ({ cell, gap: 2, hasLabels: false })),
  ...[6, 5].map((cell) => ({ cell, gap: 1, hasLabels: false })),
];

/** Lay out nodes with so many devices each in a width, if possible within a height. */
export function layOut(counts: readonly number[], width: number, heightBudget: number): HeatLayout {
  let layout: HeatLayout | null = null;
  for (const size of SIZES) {
    layout = layOutWith(counts, width, size);
    if (layout.height <= heightBudget) break;
  }
  return layout ?? layOutWith(counts, width, { cell: 5, gap: 1, hasLabels: false });
}

function layOutWith(counts: readonly number[], width: number, size: Size): HeatLayout {
  return size.hasLabels ? layOutGrid(counts, width, size) : layOutFlow(counts, width, size);
}

/** Without names nodes need no columns: one follows the other, as closely as they can be told apart. */
function layOutFlow(counts: readonly number[], width: number, { cell, gap }: Size): HeatLayout {
  const perLine = Math.min(LONGEST_LINE, Math.max(1, ...counts));
  const cellHeight = Math.round(cell * 1.2);
  const between = gap * 3;
  const total = counts.reduce((sum, count) => sum + count, 0);
  const x = new Float32Array(total);
  const y = new Float32Array(total);
  const nodes: HeatNode[] = [];
  let left = 0;
  let top = 0;
  let lines = 1;
  let first = 0;
  for (const count of counts) {
    const nodeWidth = Math.min(perLine, Math.max(1, count)) * (cell + gap) - gap;
    if (left > 0 && left + nodeWidth > width) {
      left = 0;
      top += lines * (cellHeight + gap) - gap + between;
      lines = 1;
    }
    nodes.push({ x: left, y: top, width: nodeWidth, first, count });
    for (let i = 0; i < count; i += 1) {
      x[first + i] = left + (i % perLine) * (cell + gap);
      y[first + i] = top + Math.floor(i / perLine) * (cellHeight + gap);
    }
    lines = Math.max(lines, Math.ceil(count / perLine));
    left += nodeWidth + between;
    first += count;
  }
  const height = counts.length > 0 ? top + lines * (cellHeight + gap) - gap : 0;
  return { width, height, cellWidth: cell, cellHeight, hasLabels: false, x, y, nodes };
}

function layOutGrid(counts: readonly number[], width: number, { cell, gap }: Size): HeatLayout {
  const perLine = Math.min(LONGEST_LINE, Math.max(1, ...counts));
  const cellHeight = Math.round(cell * 1.2);
  const between = Math.max(gap * 3, Math.round(cell * 0.7));
  const lineWidth = perLine * (cell + gap) - gap;
  const nodeWidth = Math.max(lineWidth, LEAST_LABEL_WIDTH);
  const columns = Math.max(1, Math.floor((width + between) / (nodeWidth + between)));
  // Spread over the whole width, unless there are too few nodes to fill a line of it.
  const pitch = counts.length >= columns ? Math.floor((width + between) / columns) : nodeWidth + between * 2;
  const total = counts.reduce((sum, count) => sum + count, 0);
  const x = new Float32Array(total);
  const y = new Float32Array(total);
  const nodes: HeatNode[] = [];
  let top = 0;
  let first = 0;
  for (let start = 0; start < counts.length; start += columns) {
    const row = counts.slice(start, start + columns);
    row.forEach((count, column) => {
      const left = column * pitch;
      nodes.push({ x: left, y: top, width: Math.min(pitch - gap, width - left), first, count });
      for (let i = 0; i < count; i += 1) {
        x[first + i] = left + (i % perLine) * (cell + gap);
        y[first + i] = top + LABEL_HEIGHT + Math.floor(i / perLine) * (cellHeight + gap);
      }
      first += count;
    });
    const lines = Math.max(1, ...row.map((count) => Math.ceil(count / perLine)));
    top += LABEL_HEIGHT + lines * (cellHeight + gap) - gap + between;
  }
  return {
    width,
    height: Math.max(0, top - between),
    cellWidth: cell,
    cellHeight,
    hasLabels: true,
    x,
    y,
    nodes,
  };
}

/** The cell under a point, or the nearest one within a gap's width; `null` where there is none. */
export function cellAt(layout: HeatLayout, pointX: number, pointY: number): number | null {
  const slack = 2;
  const { x, y, cellWidth, cellHeight } = layout;
  for (let i = 0; i < x.length; i += 1) {
    const dx = pointX - (x[i] ?? 0);
    const dy = pointY - (y[i] ?? 0);
    if (dx >= 0 && dy >= 0 && dx < cellWidth + slack && dy < cellHeight + slack) return i;
  }
  return null;
}

/** The node whose label is under a point. */
export function nodeAt(layout: HeatLayout, pointX: number, pointY: number): number | null {
  if (!layout.hasLabels) return null;
  const found = layout.nodes.findIndex(
    ({ x, y, width }) => pointX >= x && pointX < x + width && pointY >= y && pointY < y + LABEL_HEIGHT,
  );
  return found < 0 ? null : found;
}

export type Direction = "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown" | "Home" | "End";

/** The cell an arrow key leads to; stays where it is at an edge. */
export function neighbour(layout: HeatLayout, from: number, direction: Direction): number {
  const { x, y } = layout;
  const last = x.length - 1;
  if (direction === "Home") return 0;
  if (direction === "End") return last;
  if (direction === "ArrowLeft") return Math.max(0, from - 1);
  if (direction === "ArrowRight") return Math.min(last, from + 1);
  const fromX = x[from] ?? 0;
  const fromY = y[from] ?? 0;
  const sign = direction === "ArrowDown" ? 1 : -1;
  let best = from;
  let bestLine = Infinity;
  let bestAside = Infinity;
  for (let i = 0; i <= last; i += 1) {
    const line = sign * ((y[i] ?? 0) - fromY);
    if (line <= 0 || line > bestLine) continue;
    const aside = Math.abs((x[i] ?? 0) - fromX);
    if (line < bestLine || aside < bestAside) [best, bestLine, bestAside] = [i, line, aside];
  }
  return best;
}
