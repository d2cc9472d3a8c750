/** One node of the stream, with the positions of its inventory resolved once instead of at every tick. */
import { compareNames } from "./names";
import type { DeviceInventory, NodeInventory, Problem, Process, ProcessUse } from "./types";

/** One process on one device; `position` is where its numbers arrive. */
export interface UseEntry {
  readonly position: number;
  readonly kind: NonNullable<ProcessUse["kind"]>;
  readonly process: Process;
  /** Whether the hub says that it is the viewer's. */
  readonly isOwn: boolean;
}

/** The viewer's own processes on one node by pid, with full command lines. */
export type OwnProcesses = ReadonlyMap<
  number,
  { readonly startedAt: number | null; readonly command: string | null }
>;

export interface DeviceEntry {
  readonly row: number;
  readonly shortName: string;
  readonly facts: DeviceInventory["facts"];
  readonly label: string;
  readonly uses: readonly UseEntry[];
  readonly problems: readonly Problem[];
  /** Hub time; null: it is there. */
  readonly missingSince: number | null;
}

export class NodeEntry {
  readonly row: number;
  readonly id: string;
  readonly name: string;
  readonly host: NodeInventory["host"];
  readonly devices: readonly DeviceEntry[];
  /** Devices that can be had: a partitioned GPU is counted through its slices, not twice. */
  readonly countable: readonly DeviceEntry[];
  /** Problems of the node as a whole; those of one device stand at the device. */
  readonly problems: readonly Problem[];
  readonly allProblems: readonly Problem[];
  /** What the hub itself has to say of the node, in the hub's time. */
  readonly notes: readonly Problem[];
  readonly way: NodeInventory["way"];
  /** Nodes are sorted by this, then by name. */
  readonly place: number;

  readonly #inventory: NodeInventory;

  constructor(inventory: NodeInventory, own?: OwnProcesses) {
    this.#inventory = inventory;
    const { row, id, name, host, devices, processes, uses, problems, notes, way, place } = inventory;
    const uuids = new Set(devices.map((device) => device.facts.uuid));
    const indexes = new Map(devices.map((device) => [device.facts.uuid, device.facts.index]));
    const usesByDevice: UseEntry[][] = devices.map(() => []);
    uses.forEach((use, position) => {
      const told = processes[use.process];
      if (!told) return;
      const ours = own?.get(told.pid);
      const isOwn = ours !== undefined && ours.startedAt === (told.started_at ?? null);
      const process = isOwn ? { ...told, command: ours.command } : told;
      usesByDevice[use.device]?.push({ position, kind: use.kind ?? "compute", process, isOwn });
    });
    this.row = row;
    this.id = id;
    this.name = name;
    this.host = host;
    this.devices = inOrder(devices).map(([device, i]) => ({
      row: device.row,
      shortName: device.short_name,
      facts: device.facts,
      label: labelOf(device, indexes),
      uses: usesByDevice[i] ?? [],
      problems: problems.filter((problem) => problem.device_uuid === device.facts.uuid),
      missingSince: device.missing_since ?? null,
    }));
    this.countable = this.devices.filter((device) => !device.facts.is_partitioned);
    this.problems = problems.filter((problem) => !problem.device_uuid || !uuids.has(problem.device_uuid));
    this.allProblems = problems;
    this.notes = notes;
    this.way = way;
    this.place = place;
  }

  /** The same node with other own processes. */
  withOwn(own: OwnProcesses | undefined): NodeEntry {
    return new NodeEntry(this.#inventory, own);
  }

  /** What the node carries, such as "8 × H100", most of them first. */
  models(): { shortName: string; count: number }[] {
    const counts = new Map<string, number>();
    for (const { facts, shortName } of this.devices)
      if (facts.kind !== "slice") counts.set(shortName, (counts.get(shortName) ?? 0) + 1);
    return [...counts].map(([shortName, count]) => ({ shortName, count })).sort((a, b) => b.count - a.count);
  }

  /** Everyone with a process here, without repetition; `null` stands for owners that are not known. */
  users(): (string | null)[] {
    const all = this.devices.flatMap((device) => device.uses.map((use) => use.process.user ?? null));
    return [...new Set(all)].sort((a, b) => compareNames(a ?? "\uffff", b ?? "\uffff"));
  }
}

/**
 * Devices with their positions, by index, each GPU followed by its slices. Missing GPUs are at the end of the list; each
 * goes before the GPU that has its index now, because the driver numbers only the GPUs that are present.
 */
function inOrder(devices: readonly DeviceInventory[]): [DeviceInventory, number][] {
  const gpus = new Map(devices.map(({ facts }, position) => [facts.uuid, [facts.index, -position] as const]));
  const rank = ({ facts }: DeviceInventory): number[] => {
    const parent = facts.parent_uuid ? gpus.get(facts.parent_uuid) : undefined;
    const [index, turn] = parent ?? gpus.get(facts.uuid) ?? [facts.index, 0];
    return [index, turn, parent ? 1 + facts.index : 0];
  };
  return devices
    .map((device, position) => ({ device, position, rank: rank(device) }))
    .sort((a, b) => a.rank.map((value, i) => value - (b.rank[i] ?? 0)).find((difference) => difference) ?? 0)
    .map(({ device, position }) => [device, position]);
}

/** A device as people write it everywhere: `gpu01/3`, of a slice `gpu01/3.1`. */
export const deviceName = (node: { readonly name: string }, device: { readonly label: string }): string =>
  `${node.name}/${device.label}`;

/** A GPU is called by its index; a slice by its parent's and its own, such as 3.1. */
function labelOf(device: DeviceInventory, indexes: ReadonlyMap<string, number>): string {
  const { kind, index, parent_uuid } = device.facts;
  if (kind !== "slice") return String(index);
  const parent = parent_uuid ? indexes.get(parent_uuid) : undefined;
  return parent === undefined ? String(index) : `${parent}.${index}`;
}
