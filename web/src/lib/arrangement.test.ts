import { describe, expect, it } from "vitest";
import { change, gpu, node } from "./changes.fixture";
import { select } from "./filter";
import { groupNodes } from "./grouping";
import { Herd } from "./herd";
import { parseQuery } from "./search";
import { sortNodes, weigh } from "./sorting";

const herd = new Herd();
herd.apply(
  change({
    nodes: [
      node(0, {
        name: "a",
        devices: [
          gpu(0, 0, { memory_total_bytes: 40 }),
          { ...gpu(1, 1, { memory_total_bytes: 80 }), short_name: "H100" },
        ],
        processes: [{ pid: 1, user: "anna" }, { pid: 2 }],
        uses: [
          { process: 0, device: 0 },
          { process: 1, device: 0 },
        ],
      }),
      node(1, {
        name: "b",
        devices: [gpu(2, 0, { memory_total_bytes: 40 }), gpu(3, 1, { memory_total_bytes: 40 })],
      }),
      node(2, { name: "c" }),
    ],
    device_states: { row: [0, 1, 2, 3], state: ["busy", "free", "free", "free"] },
  }),
);
const { nodes } = select(herd, 0, parseQuery(""), []);

describe("sortNodes", () => {
  it.each([
    ["name", "abc"],
    ["free", "bac"],
    ["busy", "abc"],
    ["memory", "abc"],
  ] as const)("by %s", (sorting, expected) => {
    expect(
      sortNodes(nodes, weigh(nodes, sorting, herd))
        .map((selected) => selected.node.name)
        .join(""),
    ).toBe(expected);
  });
});

describe("groupNodes", () => {
  const groups = (grouping: "node" | "type" | "user"): unknown[] =>
    groupNodes(nodes, grouping, herd).map(({ of, nodes: members, free, devices }) => [
      of === null ? null : of.kind === "type" ? of.shortName : of.kind === "user" ? of.user : of.kind,
      members
        .map((member) => `${member.node.name}${member.devices.map(({ label }) => label).join("")}`)
        .join(" "),
      `${free}/${devices}`,
    ]);

  it("by node is one group without a heading", () => {
    expect(groups("node")).toEqual([[null, "a01 b01 c", "3/4"]]);
  });

  it("by type puts the largest first and shows of each node only what is of that type", () => {
    expect(groups("type")).toEqual([
      ["H100", "a1", "1/1"],
      ["A100", "a0 b01", "2/3"],
      ["no-device", "c", "0/0"],
    ]);
  });

  it("by user shows a shared device with everyone, and what is nobody's last", () => {
    expect(groups("user")).toEqual([
      ["anna", "a0", "0/1"],
      ["unknown-owner", "a0", "0/1"],
      ["nobody", "a1 b01", "3/3"],
      ["no-device", "c", "0/0"],
    ]);
  });
});
