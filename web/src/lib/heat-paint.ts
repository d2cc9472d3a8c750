/**
 * Paints the heat map. Every look a cell can have is drawn once, as a sprite; a tick then only copies the sprites of
 * cells whose look has changed, which keeps 8,000 of them well below one frame.
 */
import { type HeatLayout, LABEL_HEIGHT } from "./heat-layout";
import type { DeviceState } from "./types";

export interface HeatColours {
  readonly states: Readonly<Record<DeviceState, string>>;
  readonly busyTint: string;
  readonly onFree: string;
  readonly text: string;
  readonly textQuiet: string;
  readonly font: string;
}

/** Utilisation is shown in so many steps. */
const LEVELS = 12;
const STATES: readonly DeviceState[] = ["free", "held", "booked", "fault", "stale", "offline", "unknown"];
/** Busy cells take the looks from here on: one per level, and one for a level that is not known. */
const BUSY = STATES.length;
const BUSY_UNMEASURED = BUSY + LEVELS + 1;
const LOOKS = BUSY_UNMEASURED + 1;
const DIMMED = 64;
const DIMMED_ALPHA = 0.16;
const UNPAINTED = 255;

/** A cell's look as a number: equal numbers look the same. A utilisation of NaN is not known. */
export function lookOf(state: DeviceState, utilization: number, isDimmed: boolean): number {
  const look =
    state !== "busy"
      ? STATES.indexOf(state)
      : Number.isNaN(utilization)
        ? BUSY_UNMEASURED
        : BUSY + Math.round(Math.min(1, Math.max(0, utilization)) * LEVELS);
  return isDimmed ? look + DIMMED : look;
}

export interface HeatLabel {
  readonly text: string;
  readonly isQuiet: boolean;
}

export class HeatPainter {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #sprites: HTMLCanvasElement;
  #layout: HeatLayout | null = null;
  #colours: HeatColours | null = null;
  #ratio = 1;
  #spriteWidth = 0;
  #spriteHeight = 0;
  #painted = new Uint8Array(0);
  /** Of a map without names: its pixels, and those of all sprites one after the other. */
  #pixels: { image: ImageData; words: Uint32Array; sprites: readonly Uint32Array[] } | null = null;
  #labels: string[] = [];

  constructor(canvas: HTMLCanvasElement) {
    const context = canvas.getContext("2d");
    if (!context) throw new Error("this browser draws no canvas");
    this.#canvas = canvas;
    this.#context = context;
    this.#sprites = document.createElement("canvas");
  }

  /** Take over a layout, colours or pixel ratio; the next painting is a full one. */
  prepare(layout: HeatLayout, colours: HeatColours, ratio: number): void {
    this.#layout = layout;
    this.#colours = colours;
    this.#ratio = ratio;
    this.#canvas.width = Math.max(1, Math.round(layout.width * ratio));
    this.#canvas.height = Math.max(1, Math.round(layout.height * ratio));
    this.#spriteWidth = Math.max(1, Math.round(layout.cellWidth * ratio));
    this.#spriteHeight = Math.max(1, Math.round(layout.cellHeight * ratio));
    this.#painted = new Uint8Array(layout.x.length).fill(UNPAINTED);
    this.#labels = [];
    this.#drawSprites(colours);
    this.#pixels = layout.hasLabels ? null : this.#takePixels();
  }

  /** Paint the cells whose look has changed; gives how many. */
  paint(looks: Uint8Array, labels: readonly HeatLabel[]): number {
    const layout = this.#layout;
    if (!layout) return 0;
    const { x, y } = layout;
    const painted = this.#painted;
    if (this.#pixels) return this.#paintPixels(looks, this.#pixels, layout);
    let count = 0;
    for (let i = 0; i < painted.length; i += 1) {
      const look = looks[i] ?? UNPAINTED;
      if (look === painted[i]) continue;
      painted[i] = look;
      this.#copy(look, Math.round((x[i] ?? 0) * this.#ratio), Math.round((y[i] ?? 0) * this.#ratio));
      count += 1;
    }
    this.#context.globalAlpha = 1;
    if (layout.hasLabels) this.#write(labels);
    return count;
  }

  /** Thousands of small copies by the browser cost more than as many by hand and one large one by it. */
  #paintPixels(
    looks: Uint8Array,
    { image, words, sprites }: { image: ImageData; words: Uint32Array; sprites: readonly Uint32Array[] },
    { x, y }: HeatLayout,
  ): number {
    const painted = this.#painted;
    const [width, height] = [this.#spriteWidth, this.#spriteHeight];
    // What the browser has to be asked for, such as the size of an image, is asked for once and not by cell.
    const { width: imageWidth, height: imageHeight } = image;
    const ratio = this.#ratio;
    let count = 0;
    let top = imageHeight;
    let bottom = 0;
    for (let i = 0; i < painted.length; i += 1) {
      const look = looks[i] ?? UNPAINTED;
      if (look === painted[i]) continue;
      painted[i] = look;
      const sprite = sprites[look >= DIMMED ? look - DIMMED + LOOKS : look];
      if (!sprite) continue;
      const left = Math.round((x[i] as number) * ratio);
      const cellTop = Math.round((y[i] as number) * ratio);
      const rows = Math.min(height, imageHeight - cellTop);
      const columns = Math.min(width, imageWidth - left);
      for (let row = 0; row < rows; row += 1) {
        const from = row * width;
        const to = (cellTop + row) * imageWidth + left;
        for (let column = 0; column < columns; column += 1)
          words[to + column] = sprite[from + column] as number;
      }
      top = Math.min(top, cellTop);
      bottom = Math.max(bottom, cellTop + rows);
      count += 1;
    }
    if (count > 0) this.#context.putImageData(image, 0, 0, 0, top, imageWidth, bottom - top);
    return count;
  }

  /** The sprites as pixels, the dimmed ones behind the others, and an empty image. */
  #takePixels(): { image: ImageData; words: Uint32Array; sprites: readonly Uint32Array[] } | null {
    const context = this.#sprites.getContext("2d", { willReadFrequently: true });
    if (!context) return null;
    const [width, height] = [this.#spriteWidth, this.#spriteHeight];
    const sprites: Uint32Array[] = [];
    const sheet = context.getImageData(0, 0, this.#sprites.width, height);
    for (const alpha of [1, DIMMED_ALPHA])
      for (let look = 0; look < LOOKS; look += 1)
        sprites.push(cutOut(sheet, look * (width + 1), width, alpha));
    const image = this.#context.createImageData(this.#canvas.width, this.#canvas.height);
    return { image, words: new Uint32Array(image.data.buffer), sprites };
  }

  #copy(look: number, x: number, y: number): void {
    const context = this.#context;
    const [width, height] = [this.#spriteWidth, this.#spriteHeight];
    const isDimmed = look >= DIMMED;
    context.globalAlpha = isDimmed ? DIMMED_ALPHA : 1;
    context.clearRect(x, y, width, height);
    const sprite = (isDimmed ? look - DIMMED : look) * (width + 1);
    context.drawImage(this.#sprites, sprite, 0, width, height, x, y, width, height);
  }

  #write(labels: readonly HeatLabel[]): void {
    const layout = this.#layout;
    const colours = this.#colours;
    if (!layout || !colours) return;
    const context = this.#context;
    layout.nodes.forEach((node, i) => {
      const label = labels[i];
      const key = label ? `${label.isQuiet} ${label.text}` : "";
      if (!label || this.#labels[i] === key) return;
      this.#labels[i] = key;
      context.save();
      context.scale(this.#ratio, this.#ratio);
      context.clearRect(node.x, node.y, node.width, LABEL_HEIGHT);
      context.font = colours.font;
      context.textBaseline = "middle";
      context.fillStyle = label.isQuiet ? colours.textQuiet : colours.text;
      if (label.isQuiet) context.globalAlpha = 0.6;
      context.fillText(shorten(context, label.text, node.width - 2), node.x, node.y + LABEL_HEIGHT / 2 - 1);
      context.restore();
    });
  }

  #drawSprites(colours: HeatColours): void {
    const [width, height] = [this.#spriteWidth, this.#spriteHeight];
    this.#sprites.width = LOOKS * (width + 1);
    this.#sprites.height = height;
    const context = this.#sprites.getContext("2d", { willReadFrequently: true });
    if (!context) return;
    for (let look = 0; look < LOOKS; look += 1) {
      context.save();
      context.translate(look * (width + 1), 0);
      new Sprite(context, width, height, this.#ratio, colours).draw(look);
      context.restore();
    }
  }
}

/** One look of a cell, in device pixels. */
class Sprite {
  readonly #line: number;
  readonly #isLarge: boolean;

  constructor(
    readonly context: CanvasRenderingContext2D,
    readonly width: number,
    readonly height: number,
    readonly ratio: number,
    readonly colours: HeatColours,
  ) {
    this.#line = Math.max(1, Math.round(1.25 * ratio));
    this.#isLarge = width >= 9 * ratio;
  }

  draw(look: number): void {
    if (look >= BUSY) {
      this.#busy(look === BUSY_UNMEASURED ? null : (look - BUSY) / LEVELS);
      return;
    }
    const state = STATES[look] ?? "unknown";
    this.context.strokeStyle = this.context.fillStyle = this.colours.states[state];
    this.context.lineWidth = this.#line;
    if (state === "free") this.#free();
    else if (state === "held") this.#held();
    else if (state === "booked") this.#booked();
    else if (state === "fault") this.#fault();
    else this.#away(state);
  }

  #outline(inset: number, radius = this.width * 0.2): void {
    const { context, width, height } = this;
    context.beginPath();
    context.roundRect(inset, inset, width - 2 * inset, height - 2 * inset, radius);
  }

  #free(): void {
    const { context, width, height } = this;
    this.#outline(0);
    context.fill();
    if (!this.#isLarge) return;
    context.strokeStyle = this.colours.onFree;
    context.lineWidth = this.#line * 1.2;
    context.beginPath();
    context.arc(width / 2, height / 2, width * 0.22, 0, 2 * Math.PI);
    context.stroke();
  }

  #busy(level: number | null): void {
    const { context, width, height, colours } = this;
    context.fillStyle = colours.busyTint;
    this.#outline(0);
    context.fill();
    context.clip();
    context.fillStyle = colours.states.busy;
    if (level !== null) context.fillRect(0, height - Math.round(level * height), width, height);
    else for (let y = 0; y < height; y += 3 * this.#line) context.fillRect(0, y, width, this.#line);
    context.strokeStyle = colours.states.busy;
    context.lineWidth = this.#line * 2;
    this.#outline(0);
    context.stroke();
  }

  #held(): void {
    const { context, width, height } = this;
    this.#outline(0);
    context.save();
    context.clip();
    const step = Math.max(3 * this.#line, width / 3.2);
    context.beginPath();
    for (let start = -height; start < width; start += step) {
      context.moveTo(start, height);
      context.lineTo(start + height, 0);
    }
    context.lineWidth = this.#line * 1.2;
    context.stroke();
    context.lineWidth = this.#line * 2;
    this.#outline(0);
    context.stroke();
    context.restore();
  }

  #booked(): void {
    const { context, width, height } = this;
    this.#outline(this.#line / 2);
    context.stroke();
    context.beginPath();
    context.moveTo(0, 0);
    context.lineTo(width * 0.85, 0);
    context.lineTo(0, height * 0.75);
    context.fill();
  }

  #fault(): void {
    const { context, width, height } = this;
    this.#outline(this.#line / 2);
    context.stroke();
    const inset = Math.max(this.#line, width * 0.24);
    const top = (height - (width - 2 * inset)) / 2;
    context.lineWidth = this.#line * 1.5;
    context.beginPath();
    context.moveTo(inset, top);
    context.lineTo(width - inset, height - top);
    context.moveTo(width - inset, top);
    context.lineTo(inset, height - top);
    context.stroke();
  }

  /** Nothing is known of now: only an outline, dashed; round when it may come back any moment, dotted if never. */
  #away(state: DeviceState): void {
    const { context, width } = this;
    const dash = state === "unknown" ? this.#line : Math.max(2 * this.#line, width / 5);
    context.setLineDash([dash, dash * 0.8]);
    this.#outline(this.#line / 2, state === "stale" ? width * 0.45 : width * 0.2);
    context.stroke();
    context.setLineDash([]);
  }
}

/** One sprite of the sheet as words of four bytes, its alpha lowered. */
function cutOut(sheet: ImageData, left: number, width: number, alpha: number): Uint32Array {
  const bytes = new Uint8ClampedArray(width * sheet.height * 4);
  for (let row = 0; row < sheet.height; row += 1) {
    const start = (row * sheet.width + left) * 4;
    bytes.set(sheet.data.subarray(start, start + width * 4), row * width * 4);
  }
  for (let i = 3; i < bytes.length; i += 4) bytes[i] = (bytes[i] ?? 0) * alpha;
  return new Uint32Array(bytes.buffer);
}

function shorten(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let end = Math.min(text.length, 40);
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end)}…`;
}
