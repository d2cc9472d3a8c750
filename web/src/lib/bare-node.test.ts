import { describe, expect, it } from "vitest";
import { bareReason, bareState, neverHint } from "./bare-node";
import { change, gpu, node } from "./changes.fixture";
import { Herd } from "./herd";
import { strings } from "./strings";

const note = { code: "clock_skew", message: "its clock is 5 min ahead" };
const metric = { code: "host_failed", message: "no disks to be seen" };
const hung = { code: "driver_hung", message: "the driver does not answer", is_fault: true };

const herd = new Herd();
herd.apply(
  change({
    nodes: [
      node(0, { name: "hung", problems: [metric, hung], notes: [note] }),
      node(1, { name: "plain" }),
      node(2, { name: "silent", problems: [hung] }),
      node(3, { name: "away" }),
      node(4, { name: "never", host: null }),
      node(6, { name: "split", devices: [gpu(0, 0, { is_partitioned: true })] }),
      node(5, { name: "bare", problems: [{ code: "no_driver", message: "no driver" }] }),
    ],
    host_states: {
      row: [0, 1, 2, 3, 5, 6],
      state: ["live", "live", "stale", "offline", "live", "live"],
      reason: ["", "", "no report for 20 s", "", "", ""],
    },
  }),
);

describe("a node on which no GPU can be seen", () => {
  it.each([
    ["hung", "fault", "the driver does not answer"],
    ["plain", "unknown", strings.problem.noDevices],
    ["silent", "stale", "no report for 20 s"],
    ["away", "offline", strings.problem.nothingYet],
    ["never", "unknown", strings.problem.nothingYet],
    ["bare", "fault", "no driver"],
    ["split", "unknown", strings.problem.noSlices],
  ])("has a state and a reason: %s", (name, state, reason) => {
    const entry = herd.nodes.find((each) => each.name === name);
    expect(entry).toBeDefined();
    if (!entry) return;
    expect(bareState(herd, entry)).toBe(state);
    expect(bareReason(herd, entry)).toBe(reason);
  });
});

it("says who is to be looked at when nothing ever came", () => {
  expect(neverHint({ way: "push" })).toContain("Check that its agent is running.");
  expect(neverHint({ way: "xmlrpc" })).toContain("The hub has not reached this node yet");
});
