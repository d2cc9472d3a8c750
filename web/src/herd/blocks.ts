/** The list as blocks of which each is drawn whole or not at all: a group's heading, or a node with its devices. */
import type { Expansion } from "../lib/expansion.svelte";
import type { SelectedNode } from "../lib/filter";
import type { NodeGroup } from "../lib/grouping";
import type { DeviceEntry } from "../lib/node";
import { strings } from "../lib/strings";

export type Block =
  | { readonly key: string; readonly kind: "group"; readonly group: NodeGroup }
  | {
      readonly key: string;
      readonly kind: "node";
      /** What the node is listed under; "" where the list is not grouped. */
      readonly under: string;
      readonly selected: SelectedNode;
      readonly isOpen: boolean;
    };

export function blocksOf(
  groups: readonly NodeGroup[],
  expansion: Expansion,
  deviceCount: number,
): readonly Block[] {
  return groups.flatMap((group): Block[] => [
    ...(group.of === null ? [] : [{ key: group.key, kind: "group" as const, group }]),
    ...group.nodes.map((selected) => ({
      key: `${group.key}\n${selected.node.id}`,
      kind: "node" as const,
      under: groupTitle(group.of),
      selected,
      isOpen: expansion.isOpen(selected.node.id, deviceCount),
    })),
  ]);
}

/** What a group is of, in a few words. */
export function groupTitle(of: NodeGroup["of"]): string {
  if (of === null) return "";
  if (of.kind === "type") return of.shortName || strings.unknownType;
  if (of.kind === "user") return of.user;
  const { nobody, noDevice, unknownOwner } = strings.herd;
  return of.kind === "nobody" ? nobody : of.kind === "no-device" ? noDevice : unknownOwner;
}

const GROUP_HEIGHT = 48;
const CLOSED_HEIGHT = 60;
const TROUBLE_HEIGHT = 21;
const FACTS_HEIGHT = 130;
const DEVICE_HEIGHT = 51;
const PROCESS_HEIGHT = 25;

/** How high a block will be, as long as nobody has measured it. */
export function estimate(block: Block): number {
  if (block.kind === "group") return GROUP_HEIGHT;
  const { notes, allProblems } = block.selected.node;
  if (!block.isOpen) return CLOSED_HEIGHT + (notes.length + allProblems.length > 0 ? TROUBLE_HEIGHT : 0);
  return block.selected.devices.reduce(
    (sum, device) => sum + estimateDevice(device),
    CLOSED_HEIGHT + FACTS_HEIGHT,
  );
}

/** How high a device will be with its processes. */
export function estimateDevice({ uses }: DeviceEntry): number {
  return DEVICE_HEIGHT + PROCESS_HEIGHT * uses.length;
}
