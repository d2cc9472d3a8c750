/** Messages of the stream for tests: everything not named is empty. */
import type { FleetChange, NodeInventory } from "./types";

export const NO_DEVICES: FleetChange["devices"] = {
  row: [],
  state: [],
  reason: [],
  since: [],
  utilization_gpu: [],
  utilization_memory: [],
  memory_used_bytes: [],
  temperature_celsius: [],
  power_watts: [],
  power_limit_watts: [],
  fan_ratio: [],
  clock_sm_hertz: [],
  performance_state: [],
  throttle_reasons: [],
  ecc_uncorrected: [],
};

const NO_HOSTS: FleetChange["hosts"] = {
  row: [],
  state: [],
  reason: [],
  received_at: [],
  interval_seconds: [],
  clock_skew_seconds: [],
  cpu_ratio: [],
  load_1m: [],
  memory_used_bytes: [],
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
interface Given extends Partial<Omit<FleetChange, "devices" | "hosts" | "uses">> {
  devices?: Part<FleetChange["devices"]>;
  hosts?: Part<FleetChange["hosts"]>;
  uses?: Part<FleetChange["uses"]>;
}

export function change(given: Given = {}): FleetChange {
  return {
    tick: 1,
    after_tick: null,
    time: 1000,
    notices: [],
    totals: { nodes: {}, devices: {}, models: [] },
    nodes: [],
    removed: [],
    ...given,
    devices: { ...NO_DEVICES, ...given.devices },
    hosts: { ...NO_HOSTS, ...given.hosts },
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
