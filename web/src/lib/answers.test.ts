import { describe, expect, it } from "vitest";
import { answer } from "./answers";
import { change, gpu, node } from "./changes.fixture";
import { Herd } from "./herd";
import type { DeviceState } from "./types";

const GIB = 2 ** 30;

/** Nodes as lists of states; every device has 80 GiB unless said otherwise. */
function herdOf(nodes: readonly (readonly DeviceState[])[], facts: object = {}): Herd {
  const herd = new Herd();
  let row = 0;
  const states: { row: number[]; state: DeviceState[]; since: number[] } = { row: [], state: [], since: [] };
  herd.apply(
    change({
      nodes: nodes.map((devices, i) =>
        node(i, {
          devices: devices.map((state, index) => {
            states.row.push(row);
            states.state.push(state);
            states.since.push(1000 - row);
            return gpu(row++, index, { memory_total_bytes: 80 * GIB, ...facts });
          }),
        }),
      ),
      device_states: states,
      host_states: { row: nodes.map((_, i) => i), state: nodes.map(() => "live") },
      totals: { nodes: {}, devices: { free: 7 }, slices: { free: 1 }, models: [] },
    }),
  );
  return herd;
}

describe("answer", () => {
  it("counts what is free by model and says where most of it is", () => {
    const { models } = answer(herdOf([["free", "busy"], ["free", "free", "fault"], ["offline"]]));
    expect(models).toHaveLength(1);
    expect(models[0]).toMatchObject({ shortName: "A100", free: 3, total: 6, memoryBytes: 80 * GIB });
    expect(models[0]?.best).toMatchObject({ node: { name: "node1" }, free: 2 });
  });

  it("counts as the hub does, which knows of GPUs that two nodes report", () => {
    expect(answer(herdOf([["free"]])).counts).toEqual({ free: 7 });
  });

  it("says how many nodes have several free together, the largest first", () => {
    const four: DeviceState[] = ["free", "free", "free", "free"];
    expect(answer(herdOf([four, [...four, "free"], ["free", "free"], ["free"]])).together).toEqual([
      { gpus: 4, nodes: 2 },
      { gpus: 2, nodes: 3 },
    ]);
    expect(answer(herdOf([["free"], ["free"]])).together).toEqual([]);
    expect(answer(herdOf([four], { kind: "slice" })).together).toEqual([]);
  });

  it("orders models by memory, slices last, whatever is free", () => {
    const herd = new Herd();
    const sized = (row: number, name: string, gib: number, given: object = {}): ReturnType<typeof gpu> => ({
      ...gpu(row, row, { memory_total_bytes: gib * GIB, ...given }),
      short_name: name,
    });
    herd.apply(
      change({
        nodes: [
          node(0, {
            devices: [
              sized(0, "L4", 24),
              sized(1, "H100", 80),
              sized(2, "A100", 80),
              sized(3, "1g.90gb", 90, { kind: "slice" }),
              sized(4, "split", 80, { is_partitioned: true }),
            ],
          }),
        ],
      }),
    );
    expect(answer(herd).models.map((model) => model.shortName)).toEqual(["A100", "H100", "L4", "1g.90gb"]);
  });

  it("tells who holds how many idle, and since when", () => {
    const herd = new Herd();
    herd.apply(
      change({
        nodes: [
          node(0, {
            devices: [gpu(0), gpu(1, 1), gpu(2, 2), gpu(3, 3)],
            processes: [
              { pid: 1, user: "anna" },
              { pid: 2, user: "ben" },
            ],
            uses: [
              { process: 0, device: 0 },
              { process: 0, device: 1 },
              { process: 1, device: 1 },
              { process: 1, device: 3 },
            ],
          }),
        ],
        device_states: {
          row: [0, 1, 2, 3],
          state: ["held", "held", "held", "busy"],
          since: [500, 400, 300, 200],
        },
        host_states: { row: [0], state: ["live"] },
      }),
    );
    expect(answer(herd).holders).toEqual([
      { user: "anna", devices: 2, since: 400 },
      { user: null, devices: 1, since: 300 },
      { user: "ben", devices: 1, since: 400 },
    ]);
  });

  it("tells what running bookings set free next, and says nothing of what is booked again or away", () => {
    const herd = herdOf([["booked", "busy", "booked", "booked", "offline"], ["free"]]);
    const booking = (id: number, from: number, to: number, phase: "current" | "next" | "past") => ({
      id,
      holder: "anna",
      title: "",
      starts_at: from,
      ends_at: to,
      phase,
    });
    herd.apply(
      change({
        tick: 2,
        after_tick: 1,
        device_bookings: [
          { row: 0, bookings: [booking(1, 0, 5000, "current")] },
          { row: 1, bookings: [booking(1, 0, 5000, "current")] },
          { row: 2, bookings: [booking(2, 0, 2000, "current"), booking(3, 90_000, 99_000, "next")] },
          { row: 3, bookings: [booking(4, 0, 1500, "current"), booking(5, 1500, 9000, "next")] },
          { row: 4, bookings: [booking(6, 0, 1200, "current")] },
          { row: 5, bookings: [booking(7, 0, 900, "past")] },
        ],
      }),
    );
    expect(answer(herd).next).toMatchObject([
      { id: 2, at: 2000, devices: 1, holder: "anna", shortName: "A100" },
      { id: 1, at: 5000, devices: 2, node: { name: "node0" } },
    ]);
  });

  it("counts nodes in trouble once each", () => {
    const herd = herdOf([["free"], ["fault", "fault"], ["free"]]);
    herd.apply(change({ tick: 2, after_tick: 1, host_states: { row: [2], state: ["stale"] } }));
    expect(answer(herd).troubledNodes).toBe(2);
  });

  it("is the same object while only numbers change, and another one as soon as a state does", () => {
    const herd = new Herd();
    herd.apply(
      change({
        nodes: [node(0, { devices: [gpu(0), gpu(1, 1)] })],
        device_states: { row: [0, 1], state: ["free", "busy"] },
        host_states: { row: [0], state: ["live"] },
      }),
    );
    const first = answer(herd);
    herd.apply(change({ tick: 2, after_tick: 1, devices: { row: [1], utilization_gpu: [0.5] } }));
    expect(answer(herd)).toBe(first);
    herd.apply(change({ tick: 3, after_tick: 2, device_states: { row: [1], state: ["free"] } }));
    expect(answer(herd).models[0]?.free).toBe(2);
    herd.apply(change({ tick: 4, after_tick: 3, host_states: { row: [0], state: ["stale"] } }));
    expect(answer(herd).troubledNodes).toBe(1);
    herd.apply(change({ tick: 5, after_tick: 4, removed: [0] }));
    expect(answer(herd).models).toEqual([]);
    // A copy that stands still has answers of its own.
    const held = herd.copy();
    herd.apply(change({ tick: 6, after_tick: 5, nodes: [node(1, { devices: [gpu(2)] })] }));
    expect([answer(held).models.length, answer(herd).models.length]).toEqual([0, 1]);
  });
});
