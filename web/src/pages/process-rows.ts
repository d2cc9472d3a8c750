/** The processes on a node's devices as rows of one table. */
import type { Known } from "../lib/columns";
import type { Herd } from "../lib/herd";
import type { DeviceEntry, NodeEntry, UseEntry } from "../lib/node";

export interface ProcessRow {
  /** A process is on several devices at once; a row is one of them. */
  readonly key: string;
  readonly device: DeviceEntry;
  readonly use: UseEntry;
  readonly gpuMemoryBytes: Known;
  readonly utilizationSm: Known;
  readonly cpuCores: Known;
  readonly memoryBytes: Known;
}

export type ProcessSorting = "gpu" | "user" | "pid" | "gpuMemory" | "sm" | "cpu" | "ram" | "running";

export function processRows(herd: Herd, node: NodeEntry, devices: readonly DeviceEntry[]): ProcessRow[] {
  return devices.flatMap((device) =>
    device.uses.map((use) => ({
      key: `${device.facts.uuid} ${use.position}`,
      device,
      use,
      gpuMemoryBytes: herd.use("gpu_memory_bytes", node.row, use.position),
      utilizationSm: herd.use("utilization_sm", node.row, use.position),
      cpuCores: herd.use("cpu_cores", node.row, use.position),
      memoryBytes: herd.use("memory_bytes", node.row, use.position),
    })),
  );
}

/** What a sorting looks at: largest first, except for what is counted from small to large. Unknown is the least. */
const MEASURES: Record<Exclude<ProcessSorting, "user" | "gpu">, (row: ProcessRow) => number> = {
  pid: ({ use }) => -use.process.pid,
  gpuMemory: ({ gpuMemoryBytes }) => gpuMemoryBytes ?? -1,
  sm: ({ utilizationSm }) => utilizationSm ?? -1,
  cpu: ({ cpuCores }) => cpuCores ?? -1,
  ram: ({ memoryBytes }) => memoryBytes ?? -1,
  running: ({ use }) => -(use.process.started_at ?? Infinity),
};
const byName = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** Rows that are alike in what is looked at stay in the order of the devices. */
export function sortProcesses(
  rows: readonly ProcessRow[],
  sorting: ProcessSorting,
  isReversed = false,
): readonly ProcessRow[] {
  const sign = isReversed ? -1 : 1;
  if (sorting === "gpu") return isReversed ? [...rows].reverse() : rows;
  if (sorting === "user")
    return [...rows].sort((a, b) => {
      const [left, right] = [a.use.process.user ?? null, b.use.process.user ?? null];
      if (left === null || right === null) return Number(left === null) - Number(right === null);
      return sign * byName.compare(left, right);
    });
  const measure = MEASURES[sorting];
  return [...rows].sort((a, b) => {
    const [left, right] = [measure(a), measure(b)];
    return left === right ? 0 : sign * (left < right ? 1 : -1);
  });
}
