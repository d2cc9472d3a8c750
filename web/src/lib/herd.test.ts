import { describe, expect, it } from "vitest";
import { change, gpu, node } from "./changes.fixture";
import { Herd } from "./herd";

describe("Herd", () => {
  it("takes a snapshot and then what changed", () => {
    const herd = new Herd();
    herd.apply(
      change({
        nodes: [node(0, { devices: [gpu(0), gpu(1, 1)] })],
        devices: { row: [0, 1], utilization_gpu: [0, 0.5] },
        device_states: { row: [0, 1], state: ["free", "busy"] },
      }),
    );
    herd.apply(
      change({
        tick: 2,
        after_tick: 1,
        devices: { row: [1], utilization_gpu: [0.25] },
        device_states: { row: [1], state: ["held"] },
      }),
    );
    expect([herd.deviceState(0), herd.deviceState(1)]).toEqual(["free", "held"]);
    expect([herd.device("utilization_gpu", 0), herd.device("utilization_gpu", 1)]).toEqual([0, 0.25]);
  });

  it("refuses a change that does not follow, and leaves everything as it was", () => {
    const herd = new Herd();
    herd.apply(
      change({
        tick: 5,
        nodes: [node(0, { devices: [gpu(0)] })],
        device_states: { row: [0], state: ["busy"] },
      }),
    );
    expect(herd.apply(change({ tick: 8, after_tick: 7, device_states: { row: [0], state: ["free"] } }))).toBe(
      false,
    );
    expect(herd.tick).toBe(5);
    expect(herd.deviceState(0)).toBe("busy");
  });

  it("shows the bookings of a device until it has others or none, or the row is another device's", () => {
    const herd = new Herd();
    const booking = (id: number) =>
      ({
        id,
        holder: "Ada",
        title: null,
        starts_at: 0,
        ends_at: 9,
        phase: "current",
        use: "unused",
      }) as const;
    herd.apply(
      change({
        nodes: [node(0, { devices: [gpu(0), gpu(1, 1)] })],
        device_bookings: [
          { row: 0, bookings: [booking(1)] },
          { row: 1, bookings: [booking(2)] },
        ],
      }),
    );
    const before = herd.copy();
    const version = herd.stateVersion;
    herd.apply(change({ tick: 2, after_tick: 1, device_bookings: [{ row: 1, bookings: [] }] }));
    expect([0, 1, 7].map((row) => herd.deviceBookings(row).map(({ id }) => id))).toEqual([[1], [], []]);
    expect(herd.stateVersion).toBe(version + 1);
    expect(before.deviceBookings(1)).toHaveLength(1);
    herd.apply(change({ tick: 3, after_tick: 2, removed: [0], nodes: [node(1, { devices: [gpu(0)] })] }));
    expect(herd.deviceBookings(0)).toEqual([]);
  });

  it("puts the viewer's own command lines where they belong, until others are told", () => {
    const herd = new Herd();
    const processes = [
      { pid: 1, user: "ada", command: "python", started_at: 5 },
      { pid: 2, user: "bob", command: "python", started_at: 6 },
    ];
    const uses = [
      { process: 0, device: 0 },
      { process: 1, device: 0 },
    ];
    const inventory = node(0, { devices: [gpu(0)], processes, uses });
    const shown = (): (string | null | undefined)[] =>
      herd.nodes.flatMap((n) => n.devices.flatMap((d) => d.uses.map((use) => use.process.command)));
    herd.apply(change({ nodes: [inventory, node(1)] }));
    const other = herd.nodes[1];
    herd.applyOwn({
      node_id: ["id0", "id0", "gone"],
      pid: [1, 2, 1],
      started_at: [5, 7, null],
      command: ["python mine.py", "python that ended.py", "x"],
    });
    expect(shown()).toEqual(["python mine.py", "python"]);
    expect(herd.nodes[0]?.devices[0]?.uses.map((use) => use.isOwn)).toEqual([true, false]);
    expect(herd.nodes[1]).toBe(other);
    herd.apply(change({ tick: 2, after_tick: 1, nodes: [inventory] }));
    expect(shown()).toEqual(["python mine.py", "python"]);
    herd.applyOwn({ node_id: [], pid: [], started_at: [], command: [] });
    expect(shown()).toEqual(["python", "python"]);
  });

  it("shows nobody's own command lines after a snapshot, which may be for someone else", () => {
    const herd = new Herd();
    const mine = node(0, {
      devices: [gpu(0)],
      processes: [{ pid: 1, command: "python" }],
      uses: [{ process: 0, device: 0 }],
    });
    herd.apply(change({ nodes: [mine] }));
    herd.applyOwn({ node_id: ["id0"], pid: [1], started_at: [null], command: ["python mine.py"] });
    herd.apply(change({ tick: 9, nodes: [mine] }));
    expect(herd.nodes[0]?.devices[0]?.uses[0]?.process.command).toBe("python");
  });

  it("keeps unknown apart from zero", () => {
    const herd = new Herd();
    herd.apply(change({ devices: { row: [0, 1], power_watts: [0, null] } }));
    expect(herd.device("power_watts", 0)).toBe(0);
    expect(herd.device("power_watts", 1)).toBeNull();
    expect(herd.device("power_watts", 999)).toBeNull();
  });

  it("orders nodes by name as people count", () => {
    const herd = new Herd();
    herd.apply(
      change({ nodes: [node(0, { name: "n10" }), node(1, { name: "n2" }), node(2, { name: "N1" })] }),
    );
    expect(herd.nodes.map((n) => n.name)).toEqual(["N1", "n2", "n10"]);
  });

  it("gives a reused row none of the former owner's numbers", () => {
    const herd = new Herd();
    herd.apply(
      change({
        nodes: [node(0, { devices: [gpu(3)] })],
        devices: { row: [3], power_watts: [300] },
        device_states: { row: [3], state: ["busy"] },
        hosts: { row: [0], cpu_ratio: [0.5] },
        host_states: { row: [0], state: ["live"] },
      }),
    );
    herd.apply(change({ tick: 2, after_tick: 1, removed: [0] }));
    expect(herd.nodes).toEqual([]);
    herd.apply(
      change({
        tick: 3,
        after_tick: 2,
        nodes: [node(0, { id: "other", devices: [gpu(3, 0, { uuid: "new" })] })],
      }),
    );
    expect(herd.device("power_watts", 3)).toBeNull();
    expect(herd.deviceState(3)).toBe("unknown");
    expect(herd.host("cpu_ratio", 0)).toBeNull();
    expect(herd.nodeState(0)).toBe("never");
  });

  it("keeps a device's numbers when only its node's processes changed", () => {
    const herd = new Herd();
    herd.apply(
      change({
        nodes: [node(0, { devices: [gpu(0)] })],
        devices: { row: [0], power_watts: [50] },
        device_states: { row: [0], state: ["free"] },
      }),
    );
    const process = { pid: 7, user: "user01" };
    herd.apply(
      change({
        tick: 2,
        after_tick: 1,
        nodes: [node(0, { devices: [gpu(0)], processes: [process], uses: [{ process: 0, device: 0 }] })],
        uses: { node: [0], position: [0], gpu_memory_bytes: [1024] },
      }),
    );
    expect(herd.device("power_watts", 0)).toBe(50);
    expect(herd.nodes[0]?.devices[0]?.uses).toEqual([
      { position: 0, kind: "compute", process, isOwn: false },
    ]);
    expect(herd.use("gpu_memory_bytes", 0, 0)).toBe(1024);
  });

  it("forgets process numbers when positions get a new meaning", () => {
    const herd = new Herd();
    const uses = [{ process: 0, device: 0 }];
    const first = node(0, { devices: [gpu(0)], processes: [{ pid: 1 }], uses });
    herd.apply(change({ nodes: [first], uses: { node: [0], position: [0], gpu_memory_bytes: [5] } }));
    herd.apply(change({ tick: 2, after_tick: 1, nodes: [{ ...first, processes: [{ pid: 2 }] }] }));
    expect(herd.use("gpu_memory_bytes", 0, 0)).toBeNull();
  });

  it("starts over with a snapshot", () => {
    const herd = new Herd();
    herd.apply(change({ tick: 9, nodes: [node(0), node(1)] }));
    expect(herd.apply(change({ tick: 2, nodes: [node(4)] }))).toBe(true);
    expect(herd.nodes.map((n) => n.row)).toEqual([4]);
  });
});
