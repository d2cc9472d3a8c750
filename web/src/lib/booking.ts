/** Bookings as the hub tells them, and what the page says of them. */
import type { components } from "./api";
import { type Bar, type BarsByDevice, deviceKey } from "./timeline";

type Schemas = components["schemas"];

export type BookedDevice = Schemas["BookedDevice"];
export type BookingView = Schemas["BookingView"];
export type TimelineView = Schemas["TimelineView"];
export type FreeSlot = Schemas["FreeSlot"];
export type BookingConflict = Schemas["BookingConflict"];
export type BookingPolicy = Schemas["BookingPolicy"];
/** What stands in an error about a booking beside the common parts. */
export type BookingRefusal = Pick<Schemas["ErrorDetail"], "conflicts" | "choices" | "next_free">;

export interface Calendar {
  readonly bars: BarsByDevice;
  /** Devices that nobody may book. */
  readonly quiet: ReadonlySet<string>;
  /** Bookings of devices that no node reports any more. */
  readonly gone: readonly { readonly device: BookedDevice; readonly bar: Bar }[];
  readonly isCurrent: boolean;
}

export const NO_CALENDAR: Calendar = { bars: new Map(), quiet: new Set(), gone: [], isCurrent: true };

/** Bookings by device, each list by start. */
export function readTimeline({ devices, bookings, is_current }: TimelineView): Calendar {
  const bars = new Map<string, Bar[]>();
  const gone: { device: BookedDevice; bar: Bar }[] = [];
  for (const { id, holder, title, starts_at: from, ends_at: to, state, is_own, devices: of } of bookings) {
    const bar: Bar = { id, holder, title, from, to, isOwn: is_own, isPending: state === "pending" };
    for (const position of of) {
      const device = devices[position];
      if (!device) continue;
      if (device.is_gone) gone.push({ device, bar });
      const key = deviceKey(device.node_id, device.uuid);
      const others = bars.get(key);
      if (others) others.push(bar);
      else bars.set(key, [bar]);
    }
  }
  const quiet = devices.filter((device) => device.is_quiet);
  return {
    bars,
    gone,
    quiet: new Set(quiet.map(({ node_id, uuid }) => deviceKey(node_id, uuid))),
    isCurrent: is_current,
  };
}

/** A GPU is called by its index, a slice by its GPU's and its own, such as 3.1. */
export function deviceLabel({ index, parent_index, uuid }: Omit<BookedDevice, "is_gone">): string {
  if (index === null) return uuid;
  return parent_index === null ? String(index) : `${parent_index}.${index}`;
}

/** Devices by node in as few words as possible, as `gpuherd book` reads them: "h100-01/0-3,6 h100-02/1". */
export function devicesText(devices: readonly BookedDevice[]): string {
  const byNode = new Map<string, BookedDevice[]>();
  for (const device of devices) {
    const others = byNode.get(device.node_name);
    if (others) others.push(device);
    else byNode.set(device.node_name, [device]);
  }
  return [...byNode].map(([name, of]) => `${name}/${numbersText(of)}`).join(" ");
}

function numbersText(devices: readonly BookedDevice[]): string {
  const whole = devices.flatMap(({ index, parent_index }) =>
    index !== null && parent_index === null ? [index] : [],
  );
  const parts: string[] = [];
  const sorted = [...whole].sort((a, b) => a - b);
  for (let i = 0; i < sorted.length;) {
    let last = i;
    while (sorted[last + 1] === (sorted[last] ?? 0) + 1) last += 1;
    parts.push(last > i ? `${sorted[i]}${last > i + 1 ? "-" : ","}${sorted[last]}` : String(sorted[i]));
    i = last + 1;
  }
  const others = devices.filter(({ index, parent_index }) => index === null || parent_index !== null);
  return [...parts, ...others.map(deviceLabel)].join(",");
}
