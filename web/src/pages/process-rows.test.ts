import { describe, expect, it } from "vitest";
import { change, gpu, node } from "../lib/changes.fixture";
import { Herd } from "../lib/herd";
import { processRows, type ProcessSorting, sortProcesses } from "./process-rows";

const herd = new Herd();
herd.apply(
  change({
    nodes: [
      node(0, {
        devices: [gpu(0, 0), gpu(1, 1)],
        processes: [
          { pid: 30, user: "u10", started_at: 100 },
          { pid: 20, started_at: 50 },
          { pid: 10, user: "u9" },
        ],
        uses: [
          { process: 0, device: 1 },
          { process: 1, device: 0 },
          { process: 2, device: 1 },
          { process: 0, device: 0 },
        ],
      }),
    ],
    uses: {
      node: [0, 0, 0, 0],
      position: [0, 1, 2, 3],
      gpu_memory_bytes: [5, null, 7, 1],
      cpu_cores: [1, 2, 3, 1],
    },
  }),
);
const [entry] = herd.nodes;
if (!entry) throw new Error("the node is missing");
const rows = processRows(herd, entry, entry.devices);
const pids = (sorting: ProcessSorting, isReversed = false): number[] =>
  sortProcesses(rows, sorting, isReversed).map(({ use }) => use.process.pid);

describe("process rows", () => {
  it("are one for each process on each device, in the order of the devices", () => {
    expect(rows.map(({ device, use }) => `${device.label}:${use.process.pid}`)).toEqual([
      "0:20",
      "0:30",
      "1:30",
      "1:10",
    ]);
    expect(new Set(rows.map(({ key }) => key)).size).toBe(4);
  });

  it("are sorted with the largest first and the unknown last", () => {
    expect(pids("gpuMemory")).toEqual([10, 30, 30, 20]);
    expect(pids("gpuMemory", true)).toEqual([20, 30, 30, 10]);
    expect(pids("cpu")).toEqual([10, 20, 30, 30]);
    expect(pids("pid")).toEqual([10, 20, 30, 30]);
  });

  it("are sorted by user like people count, unknown owners last either way", () => {
    expect(pids("user")).toEqual([10, 30, 30, 20]);
    expect(pids("user", true).at(-1)).toBe(20);
  });

  it("are sorted by how long they run, longest first", () => {
    expect(pids("running")).toEqual([20, 30, 30, 10]);
  });

  it("are turned round by device", () => {
    expect(pids("gpu", true)).toEqual([10, 30, 30, 20]);
  });
});
