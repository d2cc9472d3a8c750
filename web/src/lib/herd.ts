/** The herd as the stream tells it: a snapshot and then changes, applied in place. */
import { type Known, NumberColumns } from "./columns";
import { compareNames } from "./names";
import { type DeviceEntry, NodeEntry, type OwnProcesses } from "./node";
import type { HerdChange } from "./messages";
import type { DeviceBookingView, DeviceState, FleetNotice, NodeState, OwnCommands, Totals } from "./types";

const DEVICE_NUMBERS = [
  "since",
  "utilization_gpu",
  "utilization_memory",
  "memory_used_bytes",
  "temperature_celsius",
  "power_watts",
  "power_limit_watts",
  "fan_ratio",
  "clock_sm_hertz",
  "performance_state",
  "throttle_reasons",
  "ecc_uncorrected",
] as const;
const HOST_NUMBERS = [
  "received_at",
  "interval_seconds",
  "clock_skew_seconds",
  "cpu_ratio",
  "load_1m",
  "memory_used_bytes",
  "swap_used_bytes",
  "uptime_seconds",
] as const;
const USE_NUMBERS = ["gpu_memory_bytes", "utilization_sm", "cpu_cores", "memory_bytes"] as const;

export type DeviceNumber = (typeof DEVICE_NUMBERS)[number];
export type HostNumber = (typeof HOST_NUMBERS)[number];
export type UseNumber = (typeof USE_NUMBERS)[number];

const MEBIBYTE = 2 ** 20;
const MEGAHERTZ = 1e6;
const NO_BOOKINGS: readonly DeviceBookingView[] = [];
const NO_TOTALS: Totals = { nodes: {}, devices: {}, slices: {}, models: [] };

export class Herd {
  tick: number | null = null;
  time = 0;
  totals: Totals = NO_TOTALS;
  notices: readonly FleetNotice[] = [];
  /** In the order of their names, so that positions are stable. Another list whenever one of them has changed. */
  nodes: readonly NodeEntry[] = [];
  /** Counts up when a state, of a device or a node, or anything of the inventory has changed; numbers alone do not. */
  stateVersion = 0;
  /** Counts up when bookings may have changed. */
  bookingVersion = 0;

  readonly #nodes = new Map<number, NodeEntry>();
  #own: ReadonlyMap<string, OwnProcesses> = new Map();
  #devices = new NumberColumns(DEVICE_NUMBERS);
  #deviceStates: DeviceState[] = [];
  #deviceReasons: string[] = [];
  #deviceBookings = new Map<number, readonly DeviceBookingView[]>();
  #hosts = new NumberColumns(HOST_NUMBERS);
  #nodeStates: NodeState[] = [];
  #nodeReasons: string[] = [];
  #disksUsed: (readonly Known[])[] = [];
  readonly #uses = new Map<number, NumberColumns<UseNumber>>();

  device(name: DeviceNumber, row: number): Known {
    return this.#devices.get(name, row);
  }

  /** A number of all devices by row, for those who walk over all of them; NaN is unknown. Good until the next message. */
  deviceColumn(name: DeviceNumber): Float64Array {
    return this.#devices.column(name);
  }

  deviceState(row: number): DeviceState {
    return this.#deviceStates[row] ?? "unknown";
  }

  /** How many of a node's devices are free; a GPU that is split is had through its slices. */
  freeOf(devices: readonly DeviceEntry[]): { readonly gpus: number; readonly slices: number } {
    let [gpus, slices] = [0, 0];
    for (const { row, facts } of devices)
      if (!facts.is_partitioned && this.deviceState(row) === "free") {
        if (facts.kind === "slice") slices += 1;
        else gpus += 1;
      }
    return { gpus, slices };
  }

  deviceReason(row: number): string {
    return this.#deviceReasons[row] ?? "";
  }

  /** The booking that ended last, the one that runs and the next one, as far as there are any. */
  deviceBookings(row: number): readonly DeviceBookingView[] {
    return this.#deviceBookings.get(row) ?? NO_BOOKINGS;
  }

  host(name: HostNumber, row: number): Known {
    return this.#hosts.get(name, row);
  }

  nodeState(row: number): NodeState {
    return this.#nodeStates[row] ?? "never";
  }

  nodeReason(row: number): string {
    return this.#nodeReasons[row] ?? "";
  }

  diskUsed(row: number, disk: number): Known {
    return this.#disksUsed[row]?.[disk] ?? null;
  }

  use(name: UseNumber, node: number, position: number): Known {
    return this.#uses.get(node)?.get(name, position) ?? null;
  }

  /** The herd as it is now, which later messages do not touch: for a page that stands still. */
  copy(): Herd {
    const copy = new Herd();
    copy.tick = this.tick;
    copy.time = this.time;
    copy.totals = this.totals;
    copy.notices = this.notices;
    copy.nodes = this.nodes;
    copy.stateVersion = this.stateVersion;
    copy.bookingVersion = this.bookingVersion;
    for (const [row, node] of this.#nodes) copy.#nodes.set(row, node);
    copy.#own = this.#own;
    for (const [row, numbers] of this.#uses) copy.#uses.set(row, numbers.copy());
    copy.#devices = this.#devices.copy();
    copy.#hosts = this.#hosts.copy();
    copy.#deviceStates = this.#deviceStates.slice();
    copy.#deviceReasons = this.#deviceReasons.slice();
    copy.#deviceBookings = new Map(this.#deviceBookings);
    copy.#nodeStates = this.#nodeStates.slice();
    copy.#nodeReasons = this.#nodeReasons.slice();
    copy.#disksUsed = this.#disksUsed.slice();
    return copy;
  }

  /** Take one message; `false` if it does not follow the last one and a new snapshot is needed. */
  apply(change: HerdChange): boolean {
    if (change.after_tick === null) this.#forgetAll();
    else if (change.after_tick !== this.tick) return false;
    this.tick = change.tick;
    this.time = change.time;
    this.totals = change.totals;
    this.notices = change.notices;
    const { after_tick, nodes, removed, device_states, device_bookings, host_states } = change;
    const changes = [nodes, removed, device_states.row, device_bookings, host_states.row];
    if (after_tick === null || changes.some((list) => list.length > 0)) this.stateVersion += 1;
    this.#applyInventory(change);
    this.#applyDevices(change);
    if (device_bookings.length > 0) this.bookingVersion += 1;
    for (const { row, bookings } of device_bookings)
      if (bookings.length > 0) this.#deviceBookings.set(row, bookings);
      else this.#deviceBookings.delete(row);
    this.#applyHosts(change);
    this.#applyUses(change.uses);
    return true;
  }

  /** Take what is told to this viewer alone: all of its processes, instead of those told before. */
  applyOwn({ node_id, pid, started_at, command }: OwnCommands): void {
    const own = new Map<string, Map<number, { startedAt: number | null; command: string | null }>>();
    node_id.forEach((id, i) => {
      const processes = own.get(id) ?? new Map();
      processes.set(pid[i] as number, { startedAt: started_at[i] ?? null, command: command[i] ?? null });
      own.set(id, processes);
    });
    const before = this.#own;
    this.#own = own;
    for (const [row, node] of this.#nodes)
      if (before.has(node.id) || own.has(node.id)) this.#nodes.set(row, node.withOwn(own.get(node.id)));
    this.stateVersion += 1;
    this.#sortNodes();
  }

  #forgetAll(): void {
    this.#own = new Map(); // perhaps someone else's by now; the hub tells it again after a snapshot
    this.#nodes.clear();
    this.#uses.clear();
    this.#devices = new NumberColumns(DEVICE_NUMBERS);
    this.#hosts = new NumberColumns(HOST_NUMBERS);
    this.#deviceStates = [];
    this.#deviceReasons = [];
    this.#deviceBookings.clear();
    this.#nodeStates = [];
    this.#nodeReasons = [];
    this.#disksUsed = [];
  }

  #applyInventory({ nodes, removed, after_tick }: HerdChange): void {
    for (const row of removed) this.#forgetNode(row);
    for (const inventory of nodes) {
      const before = this.#nodes.get(inventory.row);
      if (before && before.id !== inventory.id) this.#forgetNode(inventory.row);
      const known = new Map(before?.devices.map((device) => [device.row, device.facts.uuid]));
      for (const { row, facts } of inventory.devices)
        if (known.get(row) !== facts.uuid) this.#forgetDevice(row);
      this.#nodes.set(inventory.row, new NodeEntry(inventory, this.#own.get(inventory.id)));
      // Positions may mean other processes now; the numbers that belong to them come with this message.
      this.#uses.set(inventory.row, new NumberColumns(USE_NUMBERS));
    }
    if (after_tick === null || nodes.length > 0 || removed.length > 0) this.#sortNodes();
  }

  #sortNodes(): void {
    this.nodes = [...this.#nodes.values()].sort(
      (a, b) => a.place - b.place || compareNames(a.name, b.name) || (a.id < b.id ? -1 : 1),
    );
  }

  #forgetNode(row: number): void {
    for (const device of this.#nodes.get(row)?.devices ?? []) this.#forgetDevice(device.row);
    this.#nodes.delete(row);
    this.#uses.delete(row);
    this.#hosts.clear(row);
    delete this.#nodeStates[row];
    delete this.#nodeReasons[row];
    delete this.#disksUsed[row];
  }

  #forgetDevice(row: number): void {
    this.#devices.clear(row);
    delete this.#deviceStates[row];
    delete this.#deviceReasons[row];
    this.#deviceBookings.delete(row);
  }

  #applyDevices({ devices, device_details: details, device_states: states }: HerdChange): void {
    const table = this.#devices;
    table.write("utilization_gpu", devices.row, devices.utilization_gpu);
    table.write("utilization_memory", devices.row, devices.utilization_memory);
    table.write("memory_used_bytes", devices.row, devices.memory_used_mebibytes, MEBIBYTE);
    table.write("temperature_celsius", devices.row, devices.temperature_celsius);
    table.write("power_watts", devices.row, devices.power_watts);
    table.write("fan_ratio", devices.row, devices.fan_ratio);
    table.write("clock_sm_hertz", devices.row, devices.clock_sm_megahertz, MEGAHERTZ);
    table.write("power_limit_watts", details.row, details.power_limit_watts);
    table.write("performance_state", details.row, details.performance_state);
    table.write("throttle_reasons", details.row, details.throttle_reasons);
    table.write("ecc_uncorrected", details.row, details.ecc_uncorrected);
    table.write("since", states.row, states.since);
    for (let i = 0; i < states.row.length; i += 1) {
      const row = states.row[i] as number;
      this.#deviceStates[row] = states.state[i] ?? "unknown";
      this.#deviceReasons[row] = states.reason[i] ?? "";
    }
  }

  #applyHosts({ hosts, host_states: states }: HerdChange): void {
    const table = this.#hosts;
    table.write("received_at", hosts.row, hosts.received_at);
    table.write("cpu_ratio", hosts.row, hosts.cpu_ratio);
    table.write("load_1m", hosts.row, hosts.load_1m);
    table.write("memory_used_bytes", hosts.row, hosts.memory_used_mebibytes, MEBIBYTE);
    table.write("interval_seconds", states.row, states.interval_seconds);
    table.write("clock_skew_seconds", states.row, states.clock_skew_seconds);
    table.write("swap_used_bytes", states.row, states.swap_used_bytes);
    table.write("uptime_seconds", states.row, states.uptime_seconds);
    for (let i = 0; i < states.row.length; i += 1) {
      const row = states.row[i] as number;
      this.#nodeStates[row] = states.state[i] ?? "never";
      this.#nodeReasons[row] = states.reason[i] ?? "";
      this.#disksUsed[row] = states.disks_used_bytes[i] ?? [];
    }
  }

  #applyUses(columns: HerdChange["uses"]): void {
    const { node, position } = columns;
    // The uses of a node stand side by side.
    for (let from = 0, to = 0; from < node.length; from = to) {
      while (to < node.length && node[to] === node[from]) to += 1;
      const table = this.#uses.get(node[from] as number);
      if (table) for (const name of USE_NUMBERS) table.write(name, position, columns[name], 1, from, to);
    }
  }
}
