/** Who holds what, worked out from the stream so that it is as live as all the rest. */
import type { Known } from "./columns";
import type { Herd } from "./herd";
import type { DeviceEntry, NodeEntry, UseEntry } from "./node";
import type { DeviceState } from "./types";

export interface PlacedDevice {
  readonly device: DeviceEntry;
  readonly state: DeviceState;
}

/** The devices of one node, such as `gpu01/0,1`. */
export interface Place {
  readonly node: NodeEntry;
  readonly devices: readonly PlacedDevice[];
}

export interface UserRow {
  /** `null` gathers the processes whose owner is not known. */
  readonly user: string | null;
  readonly places: readonly Place[];
  /** Devices with a process of this user, also shared ones. */
  readonly devices: number;
  /** The same in whole devices: of a shared one, the part that the user's memory has in all processes' memory. */
  readonly held: number;
  /** `held` as a part of the herd, 0 to 1. */
  readonly fraction: number;
  /** GPU memory; `null` if no process tells any. */
  readonly memoryBytes: Known;
  readonly processes: number;
  readonly busyDevices: number;
  readonly idleDevices: number;
  /** On nodes that are stale or offline. */
  readonly offlineDevices: number;
  /** Neither busy nor idle as far as is known: faults and the like. */
  readonly otherDevices: number;
  /** Since when the device that has been held idle longest is idle. */
  readonly idleSince: Known;
}

export interface FreeRow {
  readonly places: readonly Place[];
  readonly devices: number;
  readonly fraction: number;
  /** Memory of the free devices together; `null` if none tells any. */
  readonly memoryBytes: Known;
}

export interface Holders {
  readonly free: FreeRow;
  readonly users: readonly UserRow[];
  /** Every device that can be had. */
  readonly devices: number;
}

export type UserSorting = "user" | "devices" | "memory" | "processes" | "fraction" | "idle";

/** Linux hands out process numbers below this: node and number fit into one key. */
const PIDS = 2 ** 22;

/** Devices by node. They are noted in the herd's order, so one look at the last one tells whether it is new. */
class Places {
  readonly list: { readonly node: NodeEntry; readonly devices: PlacedDevice[] }[] = [];
  count = 0;

  /** `false` if it was there already. */
  note(node: NodeEntry, device: DeviceEntry, state: DeviceState): boolean {
    const last = this.list.at(-1);
    if (last?.node !== node) this.list.push({ node, devices: [{ device, state }] });
    else if (last.devices.at(-1)?.device === device) return false;
    else last.devices.push({ device, state });
    this.count += 1;
    return true;
  }
}

class Gathering {
  readonly places = new Places();
  readonly processes = new Set<number>();
  memoryBytes: Known = null;
  held = 0;
  busyDevices = 0;
  idleDevices = 0;
  offlineDevices = 0;
  idleSince: Known = null;

  constructor(readonly user: string | null) {}

  place(node: NodeEntry, device: DeviceEntry, state: DeviceState): void {
    if (!this.places.note(node, device, state)) return;
    if (state === "busy") this.busyDevices += 1;
    else if (state === "held") this.idleDevices += 1;
    else if (state === "stale" || state === "offline") this.offlineDevices += 1;
  }

  row(all: number): UserRow {
    const { busyDevices, idleDevices, offlineDevices } = this;
    return {
      user: this.user,
      places: this.places.list,
      devices: this.places.count,
      held: this.held,
      fraction: all === 0 ? 0 : this.held / all,
      memoryBytes: this.memoryBytes,
      processes: this.processes.size,
      busyDevices,
      idleDevices,
      offlineDevices,
      otherDevices: this.places.count - busyDevices - idleDevices - offlineDevices,
      idleSince: this.idleSince,
    };
  }
}

export function holdersOf(herd: Herd): Holders {
  const byUser = new Map<string | null, Gathering>();
  const free = new Places();
  let all = 0;
  let freeMemory: Known = null;
  for (const node of herd.nodes) {
    for (const device of node.devices) {
      const state = herd.deviceState(device.row);
      if (!device.facts.is_partitioned) {
        all += 1;
        if (state === "free") {
          free.note(node, device, state);
          freeMemory = add(freeMemory, device.facts.memory_total_bytes ?? null);
        }
      }
      if (device.uses.length > 0) gather(herd, node, device, state, byUser);
    }
  }
  return {
    devices: all,
    free: {
      places: free.list,
      devices: free.count,
      fraction: all === 0 ? 0 : free.count / all,
      memoryBytes: freeMemory,
    },
    users: [...byUser.values()].map((found) => found.row(all)),
  };
}

function gather(
  herd: Herd,
  node: NodeEntry,
  device: DeviceEntry,
  state: DeviceState,
  byUser: Map<string | null, Gathering>,
): void {
  const memoryOf = new Map<Gathering, number>();
  for (const use of device.uses) {
    const user = use.process.user ?? null;
    let found = byUser.get(user);
    if (!found) byUser.set(user, (found = new Gathering(user)));
    const memory = herd.use("gpu_memory_bytes", node.row, use.position);
    found.place(node, device, state);
    found.processes.add(node.row * PIDS + use.process.pid);
    found.memoryBytes = add(found.memoryBytes, memory);
    memoryOf.set(found, (memoryOf.get(found) ?? 0) + (memory ?? 0));
  }
  const since = state === "held" ? herd.device("since", device.row) : null;
  const memory = [...memoryOf.values()].reduce((sum, bytes) => sum + bytes, 0);
  for (const [found, bytes] of memoryOf) {
    // Where nobody's memory is known, those who share a device share it alike.
    found.held += memory > 0 ? bytes / memory : 1 / memoryOf.size;
    if (since !== null && (found.idleSince === null || since < found.idleSince)) found.idleSince = since;
  }
}

const GIB = 2 ** 30;
const byName = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** By what a sorting looks at; whole GiB, so that rows do not change places over every allocation. */
const MEASURES: Record<Exclude<UserSorting, "user">, (row: UserRow) => number> = {
  devices: (row) => row.devices,
  memory: (row) => Math.round((row.memoryBytes ?? -1) / GIB),
  processes: (row) => row.processes,
  fraction: (row) => Math.round(row.fraction * 1000),
  idle: (row) => (row.idleSince === null ? -Infinity : -row.idleSince),
};

/** Largest first, names from A; `isReversed` turns that round. Unknown owners come last either way. */
export function sortUsers(
  rows: readonly UserRow[],
  sorting: UserSorting,
  isReversed = false,
): readonly UserRow[] {
  const sign = isReversed ? -1 : 1;
  return [...rows].sort((a, b) => {
    if (a.user === null || b.user === null) return Number(a.user === null) - Number(b.user === null);
    const names = byName.compare(a.user, b.user) || (a.user < b.user ? -1 : 1);
    if (sorting === "user") return sign * names;
    const [left, right] = [MEASURES[sorting](a), MEASURES[sorting](b)];
    return left === right ? names : sign * (left < right ? 1 : -1);
  });
}

/** Everyone with a process among these, without repetition, by name; `null` stands for owners that are not known. */
export function usersOf(uses: readonly UseEntry[]): (string | null)[] {
  const users = [...new Set(uses.map(({ process }) => process.user ?? null))];
  return users.sort((a, b) =>
    a === null || b === null ? Number(a === null) - Number(b === null) : byName.compare(a, b),
  );
}

function add(sum: Known, value: Known): Known {
  return value === null ? sum : (sum ?? 0) + value;
}
