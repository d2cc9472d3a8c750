/** What is shown of a node on which no GPU can be seen: its driver hangs or is missing, or nothing is known of it. */
import { duration } from "./format";
import type { Herd } from "./herd";
import type { NodeEntry } from "./node";
import { strings } from "./strings";
import type { DeviceState } from "./types";

/** Its state, as far as that can be said of a device: what it complains about is a fault, and none is ever free. */
export function bareState(herd: Herd, node: NodeEntry): DeviceState {
  const state = herd.nodeState(node.row);
  if (state === "stale" || state === "offline") return state;
  return state === "live" && node.allProblems.length > 0 ? "fault" : "unknown";
}

/** Why a node is not live, in a sentence; "" if it is. A duration where the hub knows no other reason. */
export function whyNotLive(herd: Herd, node: NodeEntry, now: number): string {
  const state = herd.nodeState(node.row);
  if (state === "live") return "";
  const reason = herd.nodeReason(node.row);
  const receivedAt = herd.host("received_at", node.row);
  const isExplained = node.notes.some(({ message }) => message === reason);
  if (receivedAt !== null && !isExplained) return strings.nodes.noReport(duration(now - receivedAt));
  return reason || strings.nodeState[state];
}

/** Why there is nothing to see, in a sentence. */
export function bareReason(herd: Herd, node: NodeEntry): string {
  const problems = [...node.allProblems, ...node.notes];
  const isLive = herd.nodeState(node.row) === "live";
  return (
    (isLive ? "" : herd.nodeReason(node.row)) ||
    (problems.find((problem) => problem.is_fault) ?? problems[0])?.message ||
    strings.problem[!isLive ? "nothingYet" : node.devices.length > 0 ? "noSlices" : "noDevices"]
  );
}

/** What is wrong with it, if anything is; a machine that simply has no GPU is well. */
export function bareFault(node: NodeEntry): string | undefined {
  return node.allProblems.find((problem) => problem.is_fault)?.message;
}

/** Who is to be looked at when nothing ever came from a node: the agent, or what the hub's own attempts met with. */
export function neverHint(node: Pick<NodeEntry, "way">): string {
  return node.way === "push"
    ? strings.problem.neverHint
    : strings.problem.neverReached(strings.way[node.way]);
}
