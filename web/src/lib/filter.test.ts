import { describe, expect, it } from "vitest";
import { change, gpu, node } from "./changes.fixture";
import { select } from "./filter";
import { Herd } from "./herd";
import { parseQuery } from "./search";

const GIB = 2 ** 30;
const NOW = 10_000;

/** Two nodes with GPUs, one with slices, two without anything: nobody has heard of one, the driver of the other hangs. */
function someHerd(): Herd {
  const herd = new Herd();
  const a100 = { memory_total_bytes: 79.6 * GIB };
  const rtx = { name: "NVIDIA GeForce RTX 4090", memory_total_bytes: 22.5 * GIB };
  herd.apply(
    change({
      nodes: [
        node(0, {
          name: "alpha",
          host: { hostname: "alpha.example.org", addresses: [{ interface: "eth0", ip: "192.0.2.7" }] },
          devices: [
            gpu(0, 0, a100),
            gpu(1, 1, a100),
            gpu(2, 2, { name: "NVIDIA A100", memory_total_bytes: null }),
          ],
          processes: [{ pid: 1, user: "anna", job: "991" }, { pid: 2 }],
          uses: [
            { process: 0, device: 1 },
            { process: 1, device: 2 },
          ],
        }),
        node(1, {
          name: "beta",
          devices: [{ ...gpu(3, 0, rtx), short_name: "RTX 4090" }],
          problems: [{ code: "gpu_lost", message: "lost", device_uuid: "GPU-3", is_fault: true }],
        }),
        node(2, {
          name: "gamma",
          devices: [
            gpu(4, 0, { uuid: "parent", is_partitioned: true }),
            {
              ...gpu(5, 0, { kind: "slice", parent_uuid: "parent", memory_total_bytes: 9.5 * GIB }),
              short_name: "A100 80GB 1g.10gb",
            },
            gpu(6, 1, { kind: "slice", parent_uuid: "parent", memory_total_bytes: 9.5 * GIB }),
          ],
        }),
        node(3, { name: "empty", host: null }),
        node(4, { name: "hung", problems: [{ code: "driver_hung", message: "hung", is_fault: true }] }),
      ],
      devices: {
        row: [0, 1, 2, 3, 5, 6],
        utilization_gpu: [0, 0.05, null, null, 0, 0.9],
        memory_used_mebibytes: [0, 40960, null, null, 0, 1024],
        temperature_celsius: [30, 60, null, null, null, null],
        power_watts: [50, 300, null, null, null, null],
      },
      device_states: {
        row: [0, 1, 2, 3, 5, 6],
        state: ["free", "held", "busy", "fault", "free", "busy"],
        since: [NOW - 60, NOW - 3600, NOW - 3600, NOW - 5, NOW - 7200, null],
      },
      host_states: { row: [0, 1, 2, 3, 4], state: ["live", "live", "live", "never", "live"] },
    }),
  );
  return herd;
}

const herd = someHerd();
const rows = (text: string, ...me: string[]): number[] => {
  const selection = select(herd, NOW, parseQuery(text), me);
  return [0, 1, 2, 3, 4, 5, 6].filter((row) => selection.has(row));
};

describe("select", () => {
  it("means everything without a query", () => {
    const selection = select(herd, NOW, parseQuery("  "), []);
    expect(selection).toMatchObject({ isAll: true, count: 6 });
    expect(selection.nodes.map(({ node: { name } }) => name)).toEqual([
      "alpha",
      "beta",
      "empty",
      "gamma",
      "hung",
    ]);
  });

  it.each([
    ["alpha", [0, 1, 2]],
    ["192.0.2.7", [0, 1, 2]],
    ["example.org", [0, 1, 2]],
    ["host:alpha", [0, 1, 2]],
    ["host:al*a", [0, 1, 2]],
    ["host:al*x*a", []],
    ["host:alph", []],
    ["anna", [1]],
    ["user:ANNA", [1]],
    ["user:ann", []],
    ["user:a*", [1]],
    ["991", [1]],
    ["rtx4090", [3]],
    ["type:rtx-4090", [3]],
    ['type:"RTX 4090"', [3]],
    ['type:"RTX"', []],
    ["free", [0, 5]],
    ["free,held", [0, 1, 5]],
    ["-free alpha", [1, 2]],
    ["fault", [3]],
    ["trouble", [3]],
    ["slice", [5, 6]],
    ["mem>=80G", [0, 1]],
    ["mem>=24G", [0, 1, 3]],
    ["mem>80G", []],
    ["mem=10G", [5, 6]],
    // A slice is no 80 GB GPU, whatever it is called after.
    ["80gb gamma", []],
    ["10gb", [5, 6]],
    ["1g.10gb", [5]],
    ["mem<40G", [3, 5, 6]],
    ["used>39G", [1]],
    ["left>=79G", [0]],
    ["util<10", [0, 1, 5]],
    ["idle>30m", [1, 5]],
    ["for>30m", [1, 2, 5]],
    ["temp>50", [1]],
    ["power<100", [0]],
    ["free>=1", [0, 1, 2, 4, 5, 6]],
    ["nothing-like-this", []],
  ])("%s", (text, expected) => {
    expect(rows(text)).toEqual(expected);
  });

  it("never takes unknown for zero, small or large", () => {
    expect(rows("util<1 alpha")).toEqual([0]);
    expect(rows("util>=0 alpha")).toEqual([0, 1]);
    expect(rows("mem<1000G alpha")).toEqual([0, 1]);
  });

  it("knows whose is mine, if it was told", () => {
    expect(rows("mine", "Anna")).toEqual([1]);
    expect(rows("mine")).toEqual([]);
  });

  it("finds GPUs and slices as people write them", () => {
    expect(rows("alpha/1")).toEqual([1]);
    expect(rows("ALPHA.example.org/0-1")).toEqual([0, 1]);
    expect(rows("alpha/0,2")).toEqual([0, 2]);
    expect(rows("gamma/0.1")).toEqual([6]);
    expect(rows("gamma/0")).toEqual([4, 5, 6]);
    expect(rows("-gamma/0 -beta/0 -alpha/0-2")).toEqual([]);
    expect(rows("alpha/10")).toEqual([]);
    expect(rows("lpha/1")).toEqual([]);
  });

  it("shows a slice's GPU with it, and counts only what can be had", () => {
    const selection = select(herd, NOW, parseQuery("slice free"), []);
    expect(selection.nodes[0]?.devices.map((device) => device.row)).toEqual([4, 5]);
    expect(selection.count).toBe(1);
    expect(selection.has(4)).toBe(false);
  });

  it("finds a node without devices by its name and by its trouble", () => {
    const names = (text: string): string[] =>
      select(herd, NOW, parseQuery(text), []).nodes.map((selected) => selected.node.name);
    expect(names("empty")).toEqual(["empty"]);
    expect(names("trouble")).toContain("empty");
    expect(names("free")).not.toContain("empty");
    expect(names("fault")).toEqual(["beta", "hung"]);
  });
});
