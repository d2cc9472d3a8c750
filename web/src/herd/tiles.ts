/**
 * A device in a few pixels (components/tile.css), written straight into the document and only where something differs:
 * hundreds of them change with every tick.
 */
import type { Known } from "../lib/columns";
import { strings } from "../lib/strings";
import type { DeviceState } from "../lib/types";

export interface TileLook {
  readonly label: string;
  readonly state: DeviceState;
  readonly utilization: Known;
  /** Left out by the search: it keeps its place and steps back. */
  readonly isDimmed: boolean;
}

interface Shown {
  readonly classes: string;
  readonly title: string;
  readonly size: string;
}
const shown = new WeakMap<Element, Shown>();

export function showTile(tile: HTMLElement, { label, state, utilization, isDimmed }: TileLook): void {
  const before = shown.get(tile);
  const isUnmeasured = utilization === null;
  const now = {
    classes: `tile ${state}${isUnmeasured ? " unmeasured" : ""}${isDimmed ? " dimmed" : ""}`,
    title: strings.device.tile(label, strings.deviceState[state]),
    size: state === "busy" && !isUnmeasured ? `100% ${Math.round(utilization * 100)}%` : "",
  };
  if (now.classes !== before?.classes) tile.className = now.classes;
  if (now.title !== before?.title) tile.title = tile.ariaLabel = now.title;
  if (now.size !== before?.size) tile.style.backgroundSize = now.size;
  shown.set(tile, now);
}
