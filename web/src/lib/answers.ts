/** The three answers at the top of the page: what is free, what is held without use, what is free next. */
import type { Herd } from "./herd";
import { compareNames } from "./names";
import type { DeviceEntry, NodeEntry } from "./node";
import type { DeviceState } from "./types";

export interface ModelAnswer {
  readonly shortName: string;
  readonly memoryBytes: number | null;
  readonly isSlice: boolean;
  readonly counts: Readonly<Partial<Record<DeviceState, number>>>;
  readonly free: number;
  readonly total: number;
  /** Where most of the free ones are. */
  readonly best: { readonly node: NodeEntry; readonly free: number } | null;
}

/** So many nodes have at least so many free GPUs of one model: for work that needs several in one machine. */
export interface Together {
  readonly gpus: number;
  readonly nodes: number;
}

export interface HolderAnswer {
  /** `null`: memory is taken, and nobody can be told who took it. */
  readonly user: string | null;
  readonly devices: number;
  /** Since when the first of them has been idle; hub time. */
  readonly since: number | null;
}

/** Devices of one model that a running booking holds, and nobody has booked after it. */
export interface NextAnswer {
  /** When it ends; hub time. */
  readonly at: number;
  /** Of the booking. */
  readonly id: number;
  readonly holder: string;
  readonly shortName: string;
  readonly devices: number;
  /** Where the first of them is. */
  readonly node: NodeEntry;
}

export interface Answers {
  /** Largest memory first, then by name; slices last. Positions do not depend on what is free. */
  readonly models: readonly ModelAnswer[];
  readonly together: readonly Together[];
  /** Who holds most first. */
  readonly holders: readonly HolderAnswer[];
  /** What bookings tell to be free next, the first to end first. Of what is used without one nothing is known. */
  readonly next: readonly NextAnswer[];
  /** As the hub counts: a GPU that two nodes report is one. */
  readonly counts: Readonly<Record<DeviceState, number>>;
  /** Those of `counts` that are slices. */
  readonly slices: Readonly<Partial<Record<DeviceState, number>>>;
  /** Devices whose node is stale or offline. */
  readonly offline: number;
  /** Nodes that do not report or report something wrong. */
  readonly troubledNodes: number;
}

const TOGETHER_SIZES = [8, 4, 2] as const;
const TOGETHER_SHOWN = 2;
/** A shorter time between two bookings is of no use to anyone. */
const USEFUL_SECONDS = 3600;
/** What cannot be had when its booking ends. */
const AWAY: ReadonlySet<DeviceState> = new Set(["fault", "stale", "offline", "unknown"]);
const modelKeys = new WeakMap<DeviceEntry, string>();

type Growing<T> = { -readonly [Key in keyof T]: T[Key] };
interface ModelCount extends Growing<Omit<ModelAnswer, "counts">> {
  counts: Partial<Record<DeviceState, number>>;
}

const given = new WeakMap<Herd, { readonly stateVersion: number; readonly answers: Answers }>();

/** The same object as before while no state has changed: most ticks only bring other numbers. */
export function answer(herd: Herd): Answers {
  const before = given.get(herd);
  if (before?.stateVersion === herd.stateVersion) return before.answers;
  const answers = gather(herd);
  given.set(herd, { stateVersion: herd.stateVersion, answers });
  return answers;
}

function gather(herd: Herd): Answers {
  const counts = herd.totals.devices as Record<DeviceState, number>;
  const models = new Map<string, ModelCount>();
  const holders = new Map<string | null, Growing<HolderAnswer>>();
  const together = new Map<number, number>();
  const next = new Map<string, Growing<NextAnswer>>();
  let troubledNodes = 0;
  for (const node of herd.nodes) {
    const freeHere = new Map<ModelCount, number>();
    let isTroubled = herd.nodeState(node.row) !== "live" || node.allProblems.length + node.notes.length > 0;
    for (const device of node.countable) {
      const state = herd.deviceState(device.row);
      if (state === "fault") isTroubled = true;
      const model = modelOf(models, device);
      if (!AWAY.has(state)) end(next, herd, node, device);
      model.total += 1;
      model.counts[state] = (model.counts[state] ?? 0) + 1;
      if (state === "free") {
        model.free += 1;
        freeHere.set(model, (freeHere.get(model) ?? 0) + 1);
      } else if (state === "held") {
        const since = herd.device("since", device.row);
        const users = new Set(device.uses.map(({ process }) => process.user ?? null));
        for (const user of users.size > 0 ? users : [null]) hold(holders, user, since);
      }
    }
    let most = 0;
    for (const [model, free] of freeHere) {
      if (!model.best || free > model.best.free) model.best = { node, free };
      if (!model.isSlice) most = Math.max(most, free);
    }
    for (const size of TOGETHER_SIZES) if (most >= size) together.set(size, (together.get(size) ?? 0) + 1);
    if (isTroubled) troubledNodes += 1;
  }
  return {
    models: [...models.values()].sort(compareModels),
    together: TOGETHER_SIZES.map((gpus) => ({ gpus, nodes: together.get(gpus) ?? 0 }))
      .filter(({ nodes }) => nodes > 0)
      .slice(0, TOGETHER_SHOWN),
    holders: [...holders.values()].sort(
      (a, b) =>
        b.devices - a.devices ||
        (a.since ?? Infinity) - (b.since ?? Infinity) ||
        compareNames(a.user ?? "\uffff", b.user ?? "\uffff"),
    ),
    next: [...next.values()].sort((a, b) => a.at - b.at || b.devices - a.devices),
    counts,
    slices: herd.totals.slices,
    offline: counts.stale + counts.offline,
    troubledNodes,
  };
}

function modelOf(models: Map<string, ModelCount>, device: DeviceEntry): ModelCount {
  const memoryBytes = device.facts.memory_total_bytes ?? null;
  // Thousands of devices are asked for at every tick: the key is made once for each.
  let key = modelKeys.get(device);
  if (key === undefined) modelKeys.set(device, (key = `${device.shortName}\n${memoryBytes}`));
  let model = models.get(key);
  if (!model) {
    const isSlice = device.facts.kind === "slice";
    model = { shortName: device.shortName, memoryBytes, isSlice, counts: {}, free: 0, total: 0, best: null };
    models.set(key, model);
  }
  return model;
}

function hold(
  holders: Map<string | null, Growing<HolderAnswer>>,
  user: string | null,
  since: number | null,
): void {
  const holder = holders.get(user);
  if (!holder) holders.set(user, { user, devices: 1, since });
  else {
    holder.devices += 1;
    if (since !== null && (holder.since === null || since < holder.since)) holder.since = since;
  }
}

function end(next: Map<string, Growing<NextAnswer>>, herd: Herd, node: NodeEntry, device: DeviceEntry): void {
  const bookings = herd.deviceBookings(device.row);
  const current = bookings.find(({ phase }) => phase === "current");
  if (!current) return;
  const { id, holder, ends_at: at } = current;
  if (bookings.some((later) => later.starts_at >= at && later.starts_at < at + USEFUL_SECONDS)) return;
  const { shortName } = device;
  const key = `${id}\n${shortName}`;
  const same = next.get(key);
  if (same) same.devices += 1;
  else next.set(key, { at, id, holder, shortName, devices: 1, node });
}

function compareModels(a: ModelAnswer, b: ModelAnswer): number {
  return (
    Number(a.isSlice) - Number(b.isSlice) ||
    (b.memoryBytes ?? 0) - (a.memoryBytes ?? 0) ||
    compareNames(a.shortName, b.shortName)
  );
}
