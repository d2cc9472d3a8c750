/** A device by its UUID, or as people write it: gpu01/3. */
import type { Herd } from "./herd";
import { type DeviceEntry, deviceName, type NodeEntry } from "./node";

export interface FoundDevice {
  readonly node: NodeEntry;
  readonly device: DeviceEntry;
}

/** Two nodes may report one GPU, after a move or by mistake: the one that is live tells more. One may miss another. */
export function findDevice(herd: Herd, id: string): FoundDevice | null {
  const wanted = id.toLowerCase();
  let found: FoundDevice | null = null;
  for (const node of herd.nodes)
    for (const device of node.devices)
      if (device.facts.uuid === id || deviceName(node, device).toLowerCase() === wanted) {
        if (herd.nodeState(node.row) === "live" && device.missingSince === null) return { node, device };
        found ??= { node, device };
      }
  return found;
}
