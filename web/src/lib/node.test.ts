import { describe, expect, it } from "vitest";
import { gpu, node } from "./changes.fixture";
import { NodeEntry } from "./node";

describe("NodeEntry", () => {
  it("names slices after their parent and counts a partitioned GPU through them", () => {
    const entry = new NodeEntry(
      node(0, {
        devices: [
          gpu(0, 3, { uuid: "parent", is_partitioned: true }),
          gpu(1, 0, { kind: "slice", parent_uuid: "parent" }),
          gpu(2, 1, { kind: "slice", parent_uuid: "parent" }),
        ],
      }),
    );
    expect(entry.devices.map((device) => device.label)).toEqual(["3", "3.0", "3.1"]);
    expect(entry.countable.map((device) => device.row)).toEqual([1, 2]);
    expect(entry.models()).toEqual([{ shortName: "A100", count: 1 }]);
  });

  it("shows a missing GPU in its place, and processes stay on their GPUs", () => {
    const entry = new NodeEntry(
      node(0, {
        devices: [
          gpu(0, 0),
          gpu(1, 2, { uuid: "parent", is_partitioned: true }),
          gpu(2, 1, { kind: "slice", parent_uuid: "parent" }),
          gpu(3, 0, { kind: "slice", parent_uuid: "parent" }),
          gpu(4, 1),
          gpu(5, 2),
        ],
        processes: [{ pid: 7 }],
        uses: [{ process: 0, device: 2 }],
      }),
    );
    expect(entry.devices.map((device) => device.label)).toEqual(["0", "1", "2", "2", "2.0", "2.1"]);
    expect(entry.devices.map((device) => device.row)).toEqual([0, 4, 5, 1, 3, 2]);
    expect(entry.devices.map((device) => device.uses.length)).toEqual([0, 0, 0, 0, 0, 1]);
  });

  it("puts a problem where it belongs; one of an unknown device stays with the node", () => {
    const entry = new NodeEntry(
      node(0, {
        devices: [gpu(0)],
        problems: [
          { code: "gpu_lost", message: "lost", device_uuid: "GPU-0" },
          { code: "xid", message: "elsewhere", device_uuid: "GPU-gone" },
          { code: "driver_hung", message: "hung" },
        ],
      }),
    );
    expect(entry.devices[0]?.problems.map((p) => p.message)).toEqual(["lost"]);
    expect(entry.problems.map((p) => p.message)).toEqual(["elsewhere", "hung"]);
  });

  it("lists each user once, unknown owners last, and skips uses that point nowhere", () => {
    const entry = new NodeEntry(
      node(0, {
        devices: [gpu(0)],
        processes: [
          { pid: 1, user: "user02" },
          { pid: 2 },
          { pid: 3, user: "user01" },
          { pid: 4, user: "user02" },
        ],
        uses: [0, 1, 2, 3, 77].map((process) => ({ process, device: 0 })).concat({ process: 0, device: 9 }),
      }),
    );
    expect(entry.users()).toEqual(["user01", "user02", null]);
    expect(entry.devices[0]?.uses).toHaveLength(4);
  });
});
