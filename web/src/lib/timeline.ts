/** The booking timeline as numbers: what is seen, where lines stand, what is selected and what is in its way. */
import type { Selection } from "./filter";
import type { DeviceEntry, NodeEntry } from "./node";
import { DAY, dayName, HOUR, offsetAt, startOfDay, wallOf, zoneShort } from "./zone";

export const SCALES = ["day", "week", "month"] as const;
export type Scale = (typeof SCALES)[number];

/** From a moment up to, but not including, another; seconds. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

const DAYS: Record<Scale, number> = { day: 1, week: 7, month: 30 };

/** What is seen: whole local days from the one that holds `at`. */
export function spanOf(at: number, scale: Scale, zone: string): Span {
  return { from: startOfDay(at, zone), to: startOfDay(at, zone, DAYS[scale]) };
}

/** The day at which the next or previous span begins. */
export function turn(span: Span, scale: Scale, zone: string, pages: 1 | -1): number {
  return startOfDay(span.from, zone, pages * DAYS[scale]);
}

export interface Line {
  readonly at: number;
  /** "" for a line without words. */
  readonly label: string;
  /** A new day; on the scale of a month, a new week. */
  readonly isMajor: boolean;
}

/** A local day in sight. One on which clocks are changed is shorter or longer, and drawn so. */
export interface Day extends Span {
  readonly label: string;
  readonly isWeekend: boolean;
}

export function daysOf(span: Span, zone: string): readonly Day[] {
  const days: Day[] = [];
  for (let from = span.from; from < span.to;) {
    const to = startOfDay(from, zone, 1);
    const label = dayName(from, zone);
    days.push({ from, to, label, isWeekend: label.startsWith("S") });
    from = to;
  }
  return days;
}

/** Hours between two lines inside a day; few enough that their words do not touch. */
const LINE_HOURS = [1, 2, 3, 6, 12] as const;

/** The hours of days in sight; a label needs `labelPixels`. Hours that come twice in a night say of which time they are. */
export function hourLines(
  days: readonly Day[],
  zone: string,
  pixelsPerHour: number,
  labelPixels = 34,
): readonly Line[] {
  const every = LINE_HOURS.find((hours) => hours * pixelsPerHour >= labelPixels);
  if (!every) return [];
  return days.flatMap(({ from, to }) => {
    const isChanged = to - from !== DAY;
    const lines: Line[] = [];
    for (let at = from + HOUR; at < to; at += HOUR) {
      const { hour, minute } = wallOf(at, zone);
      if (hour % every !== 0 || minute !== 0 || hour === 0) continue;
      const isAgain = isChanged && (lines.at(-1)?.label.startsWith(hourText(hour)) ?? false);
      lines.push({ at, label: hourText(hour) + (isAgain ? ` ${zoneShort(at, zone)}` : ""), isMajor: false });
    }
    return lines;
  });
}

const hourText = (hour: number): string => `${String(hour).padStart(2, "0")}:00`;

/** How finely times are chosen: a step should be something that a pointer can aim at. */
const STEPS = [HOUR / 4, HOUR, 6 * HOUR] as const;
const STEP_PIXELS = 7;

export function stepOf(pixelsPerHour: number): number {
  return STEPS.find((step) => (step / HOUR) * pixelsPerHour >= STEP_PIXELS) ?? STEPS[2];
}

/** The last moment that is not later and at which the zone's clocks show a multiple of `step`. */
export function snap(at: number, step: number, zone: string): number {
  const local = at + offsetAt(at, zone);
  return at - (((local % step) + step) % step);
}

/** One booking as it is drawn. */
export interface Bar extends Span {
  readonly id: number;
  readonly holder: string;
  readonly title: string;
  readonly isOwn: boolean;
  readonly isPending: boolean;
}

/** A line of the timeline: a node, under which its devices stand unless it is folded. */
export interface Row {
  readonly key: string;
  readonly node: NodeEntry;
  /** `null` for the node itself. */
  readonly device: DeviceEntry | null;
  /** What is booked by choosing this line. */
  readonly devices: readonly DeviceEntry[];
}

export const deviceKey = (nodeId: string, uuid: string): string => `${nodeId}\n${uuid}`;

/** A GPU that is split is booked through its slices. */
export function rowsOf(selection: Selection, isFolded: (nodeId: string) => boolean): readonly Row[] {
  return selection.nodes.flatMap(({ node, devices: all }): Row[] => {
    const devices = all.filter(({ facts }) => !facts.is_partitioned);
    if (devices.length === 0) return [];
    const own = { key: node.id, node, device: null, devices };
    if (isFolded(node.id)) return [own];
    return [
      own,
      ...devices.map((device) => ({
        key: deviceKey(node.id, device.facts.uuid),
        node,
        device,
        devices: [device],
      })),
    ];
  });
}

/** A corner of what is being selected. By the line's key: lines come, go and change places while someone chooses. */
export interface Cell {
  readonly key: string;
  readonly at: number;
}

export interface Chosen extends Span {
  /** Lines from the first to the last. */
  readonly first: number;
  readonly last: number;
}

/** What lies between two cells, in whole steps and never in the past; `null` if all of it is, or a line is gone. */
export function choose(
  one: Cell,
  other: Cell,
  rows: readonly Row[],
  step: number,
  zone: string,
  now: number,
): Chosen | null {
  const lines = [one, other].map(({ key }) => rows.findIndex((row) => row.key === key));
  const first = Math.min(...lines);
  const from = Math.max(now, snap(Math.min(one.at, other.at), step, zone));
  const last = snap(Math.max(one.at, other.at), step, zone);
  // On a night on which clocks are changed a step may end elsewhere than a step later.
  const to = snap(last + step + step / 2, step, zone);
  if (to <= now || first < 0) return null;
  return { from, to, first, last: Math.max(...lines) };
}

/** The devices of the chosen lines, each once. A node among them stands for its devices only where it is all there is. */
export function chosenDevices(
  rows: readonly Row[],
  { first, last }: Chosen,
): readonly { node: NodeEntry; device: DeviceEntry }[] {
  const lines = rows.slice(first, last + 1);
  const named = lines.some(({ device }) => device !== null);
  const found = new Map<string, { node: NodeEntry; device: DeviceEntry }>();
  for (const { node, device, devices } of lines) {
    const isFoldedOrAlone =
      device !== null || !named || !lines.some((line) => line.device && line.node.id === node.id);
    if (!isFoldedOrAlone) continue;
    for (const one of devices) found.set(deviceKey(node.id, one.facts.uuid), { node, device: one });
  }
  return [...found.values()];
}

export type BarsByDevice = ReadonlyMap<string, readonly Bar[]>;

/** Bookings in the way of a span, each once, the earliest first. */
export function inTheWay(keys: readonly string[], bars: BarsByDevice, { from, to }: Span): readonly Bar[] {
  const found = new Map<number, Bar>();
  for (const key of keys)
    for (const bar of bars.get(key) ?? []) if (bar.from < to && bar.to > from) found.set(bar.id, bar);
  return [...found.values()].sort((a, b) => a.from - b.from || a.id - b.id);
}

/** Whether all of a span is in another. */
export const isWithin = (span: Span, whole: Span | null): boolean =>
  whole !== null && span.from >= whole.from && span.to <= whole.to;

/** Where a span stands in what is seen, as shares of it; `null` if it is not in sight. */
export function placeOf({ from, to }: Span, seen: Span): { left: number; width: number } | null {
  if (to <= seen.from || from >= seen.to) return null;
  const length = seen.to - seen.from;
  const left = Math.max(0, (from - seen.from) / length);
  return { left, width: Math.min(1, (to - seen.from) / length) - left };
}
