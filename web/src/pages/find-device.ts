/** A device by its UUID. */
import type { Herd } from "../lib/herd";
import type { DeviceEntry, NodeEntry } from "../lib/node";

export interface FoundDevice {
  readonly node: NodeEntry;
  readonly device: DeviceEntry;
}

/** Two nodes may report one GPU, after a move or by mistake: the one that is live tells more. */
export function findDevice(herd: Herd, uuid: string): FoundDevice | null {
  let found: FoundDevice | null = null;
  for (const node of herd.nodes)
    for (const device of node.devices)
      if (device.facts.uuid === uuid) {
        if (herd.nodeState(node.row) === "live") return { node, device };
        found ??= { node, device };
      }
  return found;
}
