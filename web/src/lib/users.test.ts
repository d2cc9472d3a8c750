import { describe, expect, it } from "vitest";
import { change, gpu, node } from "./changes.fixture";
import { Herd } from "./herd";
import type { FleetChange } from "./types";
import { holdersOf, sortUsers, type UserRow } from "./users";

const GIB = 2 ** 30;

/** Two nodes: ada alone on two GPUs of the first, shares one of the second with bo; one is free, one has no owner. */
function herd(): Herd {
  const made = new Herd();
  made.apply(
    change({
      nodes: [
        node(0, {
          name: "alpha",
          devices: [gpu(0, 0), gpu(1, 1), gpu(2, 2, { memory_total_bytes: 80 * GIB })],
          processes: [
            { pid: 10, user: "ada" },
            { pid: 11, user: "ada" },
          ],
          uses: [
            { process: 0, device: 0 },
            { process: 0, device: 1 },
            { process: 1, device: 1 },
          ],
        }),
        node(1, {
          name: "beta",
          devices: [gpu(3, 0), gpu(4, 1)],
          processes: [{ pid: 10, user: "ada" }, { pid: 20, user: "bo" }, { pid: 30 }],
          uses: [
            { process: 0, device: 0 },
            { process: 1, device: 0 },
            { process: 2, device: 1 },
          ],
        }),
      ],
      device_states: {
        row: [0, 1, 2, 3, 4],
        state: ["held", "held", "free", "busy", "offline"],
        since: [900, 500, 700, 800, 600],
      },
      uses: {
        node: [0, 0, 0, 1, 1],
        position: [0, 1, 2, 0, 1],
        gpu_memory_bytes: [4 * GIB, 5 * GIB, 1 * GIB, 30 * GIB, 10 * GIB],
      },
    }),
  );
  return made;
}

function row(user: string | null): UserRow {
  const found = holdersOf(herd()).users.find((one) => one.user === user);
  if (!found) throw new Error(`${user} is missing`);
  return found;
}

function places(of: UserRow | ReturnType<typeof holdersOf>["free"]): string {
  return of.places
    .map(({ node, devices }) => `${node.name}/${devices.map(({ device }) => device.label).join(",")}`)
    .join(" ");
}

describe("holdersOf", () => {
  it("gathers devices by host, memory and processes per user", () => {
    expect(places(row("ada"))).toBe("alpha/0,1 beta/0");
    expect(row("ada")).toMatchObject({ devices: 3, memoryBytes: 40 * GIB, processes: 3 });
  });

  it("tells busy from held idle, and since when", () => {
    expect(row("ada")).toMatchObject({ busyDevices: 1, idleDevices: 2, otherDevices: 0, idleSince: 500 });
    expect(row("bo")).toMatchObject({ busyDevices: 1, idleDevices: 0, idleSince: null });
    expect(row(null)).toMatchObject({ busyDevices: 0, idleDevices: 0, offlineDevices: 1, otherDevices: 0 });
  });

  it("divides a shared device by memory", () => {
    expect(row("ada").held).toBeCloseTo(2.75);
    expect(row("bo").fraction).toBeCloseTo(0.25 / 5);
  });

  it("divides a shared device alike where nobody's memory is known", () => {
    const made = herd();
    made.apply(
      change({
        tick: 2,
        after_tick: 1,
        uses: { node: [1, 1], position: [0, 1], gpu_memory_bytes: [null, null] },
      } as Partial<FleetChange>),
    );
    const [ada, bo] = ["ada", "bo"].map((user) => holdersOf(made).users.find((one) => one.user === user));
    expect(ada?.held).toBeCloseTo(2.5);
    expect(bo?.held).toBeCloseTo(0.5);
    expect(bo?.memoryBytes).toBeNull();
  });

  it("does not know the memory of processes that tell none", () => {
    expect(row(null).memoryBytes).toBeNull();
  });

  it("counts what is free", () => {
    const { free, devices } = holdersOf(herd());
    expect(places(free)).toBe("alpha/2");
    expect([free.devices, devices, free.fraction]).toEqual([1, 5, 0.2]);
    expect(free.memoryBytes).toBe(80 * GIB);
  });

  it("counts a GPU that is split through its slices", () => {
    const made = new Herd();
    made.apply(
      change({
        nodes: [
          node(0, {
            devices: [
              gpu(0, 3, { is_partitioned: true }),
              gpu(1, 0, { kind: "slice", parent_uuid: "GPU-0" }),
              gpu(2, 1, { kind: "slice", parent_uuid: "GPU-0" }),
            ],
          }),
        ],
        device_states: { row: [0, 1, 2], state: ["free", "free", "free"] },
      }),
    );
    expect(holdersOf(made).devices).toBe(2);
    expect(places(holdersOf(made).free)).toBe("node0/3.0,3.1");
  });

  it("has nothing to say of an empty herd", () => {
    expect(holdersOf(new Herd())).toMatchObject({ devices: 0, users: [], free: { devices: 0, fraction: 0 } });
  });
});

describe("sortUsers", () => {
  const names = (...given: Parameters<typeof sortUsers>): (string | null)[] =>
    sortUsers(...given).map(({ user }) => user);
  const users = holdersOf(herd()).users;

  it("puts the most first and unknown owners last, either way", () => {
    expect(names(users, "memory")).toEqual(["ada", "bo", null]);
    expect(names(users, "memory", true)).toEqual(["bo", "ada", null]);
    expect(names(users, "user", true)).toEqual(["bo", "ada", null]);
  });

  it("puts those first who have been idle longest", () => {
    expect(names(users, "idle")).toEqual(["ada", "bo", null]);
  });

  it("does not change places over a few MiB", () => {
    const [ada, bo] = users;
    if (!ada || !bo) throw new Error("users are missing");
    const alike = [
      { ...bo, memoryBytes: 10 * GIB + 2 ** 20 },
      { ...ada, memoryBytes: 10 * GIB },
    ];
    expect(names(alike, "memory")).toEqual(["ada", "bo"]);
  });
});
