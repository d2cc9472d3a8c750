/** A chart as a picture to send around: with its title, its lines by name, and the background of the theme. */
import type uPlot from "uplot";
import { strings } from "../lib/strings";
import type { HistoryLine } from "./lines";
import { statePattern } from "./patterns";

export interface Picture {
  readonly title: string;
  readonly subtitle: string;
  readonly lines: readonly HistoryLine[];
  readonly name: string;
}

const PADDING = 14;
const LINE_HEIGHT = 18;
const MARK = 16;

/** Save it in the browser's folder for downloads. */
export function savePng(plot: uPlot, picture: Picture): void {
  paint(plot, picture).toBlob((blob) => {
    if (!blob) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = picture.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }, "image/png");
}

function paint(plot: uPlot, { title, subtitle, lines }: Picture): HTMLCanvasElement {
  const source = plot.ctx.canvas;
  const scale = devicePixelRatio;
  const style = getComputedStyle(plot.root);
  const token = (name: string): string => style.getPropertyValue(name).trim();
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  if (!context) return source;
  const font = (size: number, weight = 400): string => `${weight} ${size}px ${style.fontFamily}`;
  const width = source.width / scale + 2 * PADDING;
  context.font = font(12);
  const places = flow(
    lines.map(({ label }) => MARK + 6 + context.measureText(label).width + 14),
    width - 2 * PADDING,
  );
  const legendRows = (places.at(-1)?.row ?? -1) + 1;
  const top = PADDING + 2 * LINE_HEIGHT + 6;
  const legendTop = top + source.height / scale + 6;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round((legendTop + legendRows * LINE_HEIGHT + PADDING) * scale);
  context.scale(scale, scale);
  context.fillStyle = token("--background");
  context.fillRect(0, 0, width, canvas.height / scale);
  context.textBaseline = "middle";
  context.fillStyle = token("--text");
  context.font = font(14, 600);
  context.fillText(title, PADDING, PADDING + LINE_HEIGHT / 2);
  context.fillStyle = token("--text-secondary");
  context.font = font(12);
  context.fillText(
    `${subtitle} · ${strings.product}`,
    PADDING,
    PADDING + 1.5 * LINE_HEIGHT,
    width - 2 * PADDING,
  );
  context.drawImage(source, PADDING, top, source.width / scale, source.height / scale);
  lines.forEach((line, i) => {
    const { left = 0, row = 0 } = places[i] ?? {};
    const [x, y] = [PADDING + left, legendTop + (row + 0.5) * LINE_HEIGHT];
    mark(context, line, x, y, token);
    context.fillStyle = token("--text");
    context.fillText(line.label, x + MARK + 6, y);
  });
  return canvas;
}

/** Puts things of these widths into rows. */
function flow(widths: readonly number[], most: number): { left: number; row: number }[] {
  let left = 0;
  let row = 0;
  return widths.map((width) => {
    if (left > 0 && left + width > most) {
      left = 0;
      row += 1;
    }
    const place = { left, row };
    left += width;
    return place;
  });
}

function mark(
  context: CanvasRenderingContext2D,
  { colour, isDashed, state }: HistoryLine,
  x: number,
  y: number,
  token: (name: string) => string,
): void {
  if (state) {
    context.fillStyle = statePattern(state, token(`--state-${state}`), 1);
    context.fillRect(x, y - 6, MARK, 12);
    context.strokeStyle = token(`--state-${state}`);
    context.strokeRect(x, y - 6, MARK, 12);
    return;
  }
  context.save();
  context.strokeStyle = token(`--series-${(colour % 8) + 1}`);
  context.lineWidth = 2.5;
  if (isDashed) context.setLineDash([4, 2.5]);
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + MARK, y);
  context.stroke();
  context.restore();
}
