import { describe, expect, it } from "vitest";
import { change, gpu, node } from "./changes.fixture";
import { Herd } from "./herd";
import { pack, unpack } from "./messages";

describe("a message on its way to the page", () => {
  const told = change({
    nodes: Array.from({ length: 250 }, (_, i) => node(i, { devices: [gpu(i)] })),
    devices: { row: [0, 1], power_watts: [0, null], utilization_gpu: [0.5, 1] },
    device_states: { row: [0, 1], state: ["free", "busy"], reason: ["", "computing"], since: [12.5, null] },
    host_states: { row: [0], state: ["live"], reason: [""], disks_used_bytes: [[1, null]] },
  });

  it("says the same as before", () => {
    const { change: packed } = pack(JSON.stringify(told));
    const herd = new Herd();
    expect(herd.apply(unpack(structuredClone(packed)))).toBe(true);
    expect(herd.nodes).toHaveLength(250);
    expect([herd.device("power_watts", 0), herd.device("power_watts", 1)]).toEqual([0, null]);
    expect([herd.device("utilization_gpu", 0), herd.device("utilization_gpu", 1)]).toEqual([0.5, 1]);
    expect([herd.deviceState(0), herd.deviceState(1)]).toEqual(["free", "busy"]);
    expect([herd.device("since", 0), herd.device("since", 1)]).toEqual([12.5, null]);
    expect([herd.nodeState(0), herd.diskUsed(0, 0), herd.diskUsed(0, 1)]).toEqual(["live", 1, null]);
  });

  it("hands over all numbers and keeps unknown apart from zero", () => {
    const { change: packed, buffers } = pack(JSON.stringify(told));
    expect(packed.devices.row).toEqual(Int32Array.of(0, 1));
    expect(packed.devices.power_watts).toEqual(Float64Array.of(0, NaN));
    for (const name of ["row", "power_watts", "utilization_gpu"] as const)
      expect(buffers).toContain((packed.devices[name] as Float64Array).buffer);
  });

  it.each(["", "{", "null", "[]", "{}", '{"tick": 2, "after_tick": null, "time": 3}'])(
    "is not made of %j",
    (text) => {
      expect(() => pack(text)).toThrow();
    },
  );
});
