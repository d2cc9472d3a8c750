/** In which order nodes stand in the list. */
import type { Herd } from "./herd";
import type { SelectedNode } from "./filter";
import type { Sorting } from "./route.svelte";

/** By node id, what each is worth; kept for a while, so that the list does not move under the pointer. */
export type Worth = ReadonlyMap<string, number>;

export function weigh(nodes: readonly SelectedNode[], sorting: Sorting, herd: Herd): Worth {
  if (sorting === "name") return new Map();
  return new Map(nodes.map((selected) => [selected.node.id, worthOf(selected, sorting, herd)]));
}

/** Most first. Nodes come by name already; whatever is equal keeps that order. */
export function sortNodes(nodes: readonly SelectedNode[], worth: Worth): readonly SelectedNode[] {
  if (worth.size === 0) return nodes;
  return [...nodes].sort((a, b) => (worth.get(b.node.id) ?? -1) - (worth.get(a.node.id) ?? -1));
}

function worthOf({ devices }: SelectedNode, sorting: Sorting, herd: Herd): number {
  let worth = 0;
  for (const { row, facts } of devices) {
    if (facts.is_partitioned) continue;
    if (sorting === "memory") worth = Math.max(worth, facts.memory_total_bytes ?? 0);
    else if (herd.deviceState(row) === sorting) worth += 1;
  }
  return worth;
}
