/** In which order nodes stand in the list. */
import type { Herd } from "./herd";
import type { SelectedNode } from "./filter";
import type { Sorting } from "./route.svelte";

/** Nodes come by name already; whatever is equal keeps that order. */
export function sortNodes(
  nodes: readonly SelectedNode[],
  sorting: Sorting,
  herd: Herd,
): readonly SelectedNode[] {
  if (sorting === "name") return nodes;
  const worth = new Map(nodes.map((selected) => [selected, worthOf(selected, sorting, herd)]));
  return [...nodes].sort((a, b) => (worth.get(b) ?? 0) - (worth.get(a) ?? 0));
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
