/** The herd as the stream tells it: a snapshot and then changes, applied in place. */
import { type Known, NumberColumns } from "./columns";
import { NodeEntry } from "./node";
import type { DeviceState, FleetChange, FleetNotice, NodeState, Totals } from "./types";

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

const NO_TOTALS: Totals = { nodes: {}, devices: {}, models: [] };
const byName = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

export class Herd {
  tick: number | null = null;
  time = 0;
  totals: Totals = NO_TOTALS;
  notices: readonly FleetNotice[] = [];
  /** In the order of their names, so that positions are stable. */
  nodes: readonly NodeEntry[] = [];

  readonly #nodes = new Map<number, NodeEntry>();
  #devices = new NumberColumns(DEVICE_NUMBERS);
  #deviceStates: DeviceState[] = [];
  #deviceReasons: string[] = [];
  #hosts = new NumberColumns(HOST_NUMBERS);
  #nodeStates: NodeState[] = [];
  #nodeReasons: string[] = [];
  #disksUsed: (readonly Known[])[] = [];
  readonly #uses = new Map<number, NumberColumns<UseNumber>>();

  device(name: DeviceNumber, row: number): Known {
    return this.#devices.get(name, row);
  }

  deviceState(row: number): DeviceState {
    return this.#deviceStates[row] ?? "unknown";
  }

  deviceReason(row: number): string {
    return this.#deviceReasons[row] ?? "";
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

  /** Take one message; `false` if it does not follow the last one and a new snapshot is needed. */
  apply(change: FleetChange): boolean {
    if (change.after_tick === null) this.#forgetAll();
    else if (change.after_tick !== this.tick) return false;
    this.tick = change.tick;
    this.time = change.time;
    this.totals = change.totals;
    this.notices = change.notices;
    this.#applyInventory(change);
    this.#applyDevices(change.devices);
    this.#applyHosts(change.hosts);
    this.#applyUses(change.uses);
    return true;
  }

  #forgetAll(): void {
    this.#nodes.clear();
    this.#uses.clear();
    this.#devices = new NumberColumns(DEVICE_NUMBERS);
    this.#hosts = new NumberColumns(HOST_NUMBERS);
    this.#deviceStates = [];
    this.#deviceReasons = [];
    this.#nodeStates = [];
    this.#nodeReasons = [];
    this.#disksUsed = [];
  }

  #applyInventory({ nodes, removed, after_tick }: FleetChange): void {
    for (const row of removed) this.#forgetNode(row);
    for (const inventory of nodes) {
      const before = this.#nodes.get(inventory.row);
      if (before && before.id !== inventory.id) this.#forgetNode(inventory.row);
      const known = new Map(before?.devices.map((device) => [device.row, device.facts.uuid]));
      for (const { row, facts } of inventory.devices)
        if (known.get(row) !== facts.uuid) this.#forgetDevice(row);
      this.#nodes.set(inventory.row, new NodeEntry(inventory));
      // Positions may mean other processes now; the numbers that belong to them come with this message.
      this.#uses.set(inventory.row, new NumberColumns(USE_NUMBERS));
    }
    if (after_tick === null || nodes.length > 0 || removed.length > 0)
      this.nodes = [...this.#nodes.values()].sort(
        (a, b) => a.place - b.place || byName.compare(a.name, b.name) || (a.id < b.id ? -1 : 1),
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
  }

  #applyDevices(columns: FleetChange["devices"]): void {
    this.#devices.write(columns.row, columns);
    columns.row.forEach((row, i) => {
      this.#deviceStates[row] = columns.state[i] ?? "unknown";
      this.#deviceReasons[row] = columns.reason[i] ?? "";
    });
  }

  #applyHosts(columns: FleetChange["hosts"]): void {
    this.#hosts.write(columns.row, columns);
    columns.row.forEach((row, i) => {
      this.#nodeStates[row] = columns.state[i] ?? "never";
      this.#nodeReasons[row] = columns.reason[i] ?? "";
      this.#disksUsed[row] = columns.disks_used_bytes[i] ?? [];
    });
  }

  #applyUses(columns: FleetChange["uses"]): void {
    const places = new Map<number, number[]>();
    columns.node.forEach((node, i) => {
      const list = places.get(node);
      if (list) list.push(i);
      else places.set(node, [i]);
    });
    for (const [node, list] of places) {
      const pick = (values: readonly Known[]): Known[] => list.map((i) => values[i] ?? null);
      this.#uses.get(node)?.write(
        list.map((i) => columns.position[i] ?? 0),
        {
          gpu_memory_bytes: pick(columns.gpu_memory_bytes),
          utilization_sm: pick(columns.utilization_sm),
          cpu_cores: pick(columns.cpu_cores),
          memory_bytes: pick(columns.memory_bytes),
        },
      );
    }
  }
}
