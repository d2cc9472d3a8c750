/** The list by node, by GPU type or by user. */
import type { SelectedNode } from "./filter";
import type { Herd } from "./herd";
import { compareNames } from "./names";
import type { DeviceEntry } from "./node";
import type { Grouping } from "./route.svelte";

export interface NodeGroup {
  readonly key: string;
  /** What the group is of; `null` where the list is not grouped. */
  readonly of:
    | { readonly kind: "type"; readonly shortName: string; readonly memoryBytes: number | null }
    | { readonly kind: "user"; readonly user: string }
    /** Devices without a process, with processes of unknown owners, nodes without devices. */
    | { readonly kind: "nobody" | "unknown-owner" | "no-device" }
    | null;
  readonly nodes: readonly SelectedNode[];
  readonly devices: number;
  readonly free: number;
}

type Of = Exclude<NodeGroup["of"], null>;
const LAST: readonly Of["kind"][] = ["type", "user", "unknown-owner", "nobody", "no-device"];

export function groupNodes(
  nodes: readonly SelectedNode[],
  grouping: Grouping,
  herd: Herd,
): readonly NodeGroup[] {
  if (grouping === "node")
    // Counted when asked, which is seldom: a list that is not grouped has no heading.
    return [
      {
        key: "",
        of: null,
        nodes,
        get devices() {
          return count(nodes, herd).devices;
        },
        get free() {
          return count(nodes, herd).free;
        },
      },
    ];
  const groups = new Map<
    string,
    { of: Of; nodes: { node: SelectedNode["node"]; devices: DeviceEntry[] }[] }
  >();
  const put = (of: Of, node: SelectedNode["node"], device: DeviceEntry | null): void => {
    const key = keyOf(of);
    let group = groups.get(key);
    if (!group) groups.set(key, (group = { of, nodes: [] }));
    let last = group.nodes.at(-1);
    if (last?.node !== node) group.nodes.push((last = { node, devices: [] }));
    if (device) last.devices.push(device);
  };
  for (const { node, devices } of nodes) {
    if (devices.length === 0) put({ kind: "no-device" }, node, null);
    for (const device of devices) {
      // A partitioned GPU is where its slices are, and only there.
      if (device.facts.is_partitioned) continue;
      for (const of of grouping === "type" ? [typeOf(device)] : usersOf(device)) put(of, node, device);
    }
  }
  return [...groups]
    .map(([key, group]) => ({ key, ...group, ...count(group.nodes, herd) }))
    .sort((a, b) => compareOf(a.of, b.of));
}

function typeOf(device: DeviceEntry): Of {
  return {
    kind: "type",
    shortName: device.shortName,
    memoryBytes: device.facts.memory_total_bytes ?? null,
  };
}

function usersOf(device: DeviceEntry): Of[] {
  if (device.uses.length === 0) return [{ kind: "nobody" }];
  const users = new Set(device.uses.map(({ process }) => process.user ?? null));
  return [...users].map((user) => (user === null ? { kind: "unknown-owner" } : { kind: "user", user }));
}

function keyOf(of: Of): string {
  if (of.kind === "type") return `type ${of.memoryBytes} ${of.shortName}`;
  return of.kind === "user" ? `user ${of.user}` : of.kind;
}

function compareOf(a: Of, b: Of): number {
  if (a.kind === "type" && b.kind === "type")
    return (b.memoryBytes ?? 0) - (a.memoryBytes ?? 0) || compareNames(a.shortName, b.shortName);
  if (a.kind === "user" && b.kind === "user") return compareNames(a.user, b.user);
  return LAST.indexOf(a.kind) - LAST.indexOf(b.kind);
}

function count(nodes: readonly SelectedNode[], herd: Herd): { devices: number; free: number } {
  let devices = 0;
  let free = 0;
  for (const node of nodes)
    for (const { row, facts } of node.devices) {
      if (facts.is_partitioned) continue;
      devices += 1;
      if (herd.deviceState(row) === "free") free += 1;
    }
  return { devices, free };
}
