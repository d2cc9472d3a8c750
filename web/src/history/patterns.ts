/** What the state of a device looks like as an area: colour and pattern, as the glyphs have them. */
import type { DeviceState } from "../lib/types";

const SIZE = 8;

type Stroke = (context: CanvasRenderingContext2D) => void;

const line =
  (...points: readonly (readonly [number, number])[]): Stroke =>
  (context) => {
    context.beginPath();
    points.forEach(([x, y], i) => (i % 2 === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
    context.stroke();
  };
const ring: Stroke = (context) => {
  context.beginPath();
  context.arc(4, 4, 2, 0, 2 * Math.PI);
  context.stroke();
};
const wedge: Stroke = (context) => {
  context.beginPath();
  context.moveTo(0, 0);
  context.lineTo(7, 0);
  context.lineTo(0, 7);
  context.fill();
};

/** How much of the colour lies behind, and what is drawn on it. */
const LOOKS: Record<DeviceState, { readonly ground: number; readonly stroke?: Stroke }> = {
  free: { ground: 0.3, stroke: ring },
  busy: { ground: 1 },
  held: { ground: 0.12, stroke: line([-2, 2], [2, -2], [-2, 10], [10, -2], [6, 10], [10, 6]) },
  booked: { ground: 0.2, stroke: wedge },
  fault: { ground: 0.2, stroke: line([1, 1], [7, 7], [7, 1], [1, 7]) },
  stale: { ground: 0, stroke: line([1, 4], [5, 4]) },
  offline: { ground: 0.12, stroke: line([0, 2], [4, 2], [4, 6], [8, 6]) },
  unknown: { ground: 0, stroke: line([3, 4], [4.5, 4]) },
};

/** A fill for canvases whose pixels are `scale` times those of the page. */
export function statePattern(state: DeviceState, colour: string, scale: number): CanvasPattern | string {
  const tile = document.createElement("canvas");
  tile.width = tile.height = Math.round(SIZE * scale);
  const context = tile.getContext("2d");
  if (!context) return colour;
  const { ground, stroke } = LOOKS[state];
  context.scale(tile.width / SIZE, tile.width / SIZE);
  context.fillStyle = context.strokeStyle = colour;
  context.globalAlpha = ground;
  context.fillRect(0, 0, SIZE, SIZE);
  context.globalAlpha = 1;
  context.lineWidth = 1.5;
  stroke?.(context);
  return context.createPattern(tile, "repeat") ?? colour;
}
