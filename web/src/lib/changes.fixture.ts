/** Messages of the stream for tests: everything not named is empty. */
import type { FleetChange, NodeInventory } from "./types";

export const NO_DEVICES: FleetChange["devices"] = {
  row: [],
  utilization_gpu: [],
  utilization_memory: [],
  memory_used_mebibytes: [],
  temperature_celsius: [],
  power_watts: [],
  fan_ratio: [],
  clock_sm_megahertz: [],
};

const NO_DETAILS: FleetChange["device_details"] = {
  row: [],
  power_limit_watts: [],
  performance_state: [],
  throttle_reasons: [],
  ecc_uncorrected: [],
};

const NO_STATES: FleetChange["device_states"] = { row: [], state: [], reason: [], since: [] };

const NO_HOSTS: FleetChange["hosts"] = {
  row: [],
  received_at: [],
  cpu_ratio: [],
  load_1m: [],
  memory_used_mebibytes: [],
};

const NO_HOST_STATES: FleetChange["host_states"] = {
  row: [],
  state: [],
  reason: [],
  interval_seconds: [],
  clock_skew_seconds: [],
  swap_used_bytes: [],
  uptime_seconds: [],
  disks_used_bytes: [],
};

const NO_USES: FleetChange["uses"] = {
  node: [],
  position: [],
  gpu_memory_bytes: [],
  utilization_sm: [],
  cpu_cores: [],
  memory_bytes: [],
};

type Part<Columns> = Partial<Columns>;
type Tables = "devices" | "device_details" | "device_states" | "hosts" | "host_states" | "uses";
interface Given extends Partial<Omit<FleetChange, Tables>> {
  devices?: Part<FleetChange["devices"]>;
  device_details?: Part<FleetChange["device_details"]>;
  device_states?: Part<FleetChange["device_states"]>;
  hosts?: Part<FleetChange["hosts"]>;
  host_states?: Part<FleetChange["host_states"]>;
  uses?: Part<FleetChange["uses"]>;
}

export function change(given: Given = {}): FleetChange {
  return {
    tick: 1,
    after_tick: null,
    time: 1000,
    tick_seconds: 1,
    notices: [],
    totals: { nodes: {}, devices: {}, slices: {}, models: [] },
    nodes: [],
    removed: [],
    device_bookings: [],
    ...given,
    devices: { ...NO_DEVICES, ...given.devices },
    device_details: { ...NO_DETAILS, ...given.device_details },
    device_states: { ...NO_STATES, ...given.device_states },
    hosts: { ...NO_HOSTS, ...given.hosts },
    host_states: { ...NO_HOST_STATES, ...given.host_states },
    uses: { ...NO_USES, ...given.uses },
  };
}

export function node(row: number, given: Partial<NodeInventory> = {}): NodeInventory {
  return {
    row,
    id: `id${row}`,
    name: `node${row}`,
    host: { hostname: `node${row}` },
    devices: [],
    processes: [],
    uses: [],
    problems: [],
    notes: [],
    way: "push",
    place: 0,
    ...given,
  };
}

export function gpu(row: number, index = 0, given: object = {}): NodeInventory["devices"][number] {
  return { row, short_name: "A100", facts: { uuid: `GPU-${row}`, index, name: "NVIDIA A100", ...given } };
}
