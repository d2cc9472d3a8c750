/** Which devices a query means, tick by tick. */
import { bareState } from "./bare-node";
import type { Known } from "./columns";
import type { Herd } from "./herd";
import type { DeviceEntry, NodeEntry } from "./node";
import type { Comparison, Query, SearchName, Term } from "./search";
import type { DeviceState } from "./types";

/** A node of which something is meant: its devices, with the GPUs that matching slices are cut from. */
export interface SelectedNode {
  readonly node: NodeEntry;
  readonly devices: readonly DeviceEntry[];
}

export interface Selection {
  /** Nothing is left out. */
  readonly isAll: boolean;
  readonly nodes: readonly SelectedNode[];
  /** How many devices are meant, of those that can be had. */
  readonly count: number;
  /** How many of these are slices. */
  readonly slices: number;
  has(deviceRow: number): boolean;
}

/** A card sold as 24, 40 or 80 GB has a few per cent less or more: sizes are compared with this tolerance. */
const SIZE_TOLERANCE = 0.07;
const SIZE = /^(\d{1,5})gi?b$/;
const IDLE_STATES: ReadonlySet<DeviceState> = new Set(["free", "held", "booked"]);
const TROUBLED_STATES: ReadonlySet<DeviceState> = new Set(["fault", "stale", "offline", "unknown"]);

interface Words {
  readonly node: string;
  readonly devices: readonly string[];
}
/** An entry is replaced whenever its inventory changes, so words kept by entry are never old. */
const wordsByNode = new WeakMap<NodeEntry, Words>();

/** `me` are the viewer's user names; empty where they are not known. */
export function select(herd: Herd, now: number, query: Query, me: readonly string[]): Selection {
  if (query.terms.length === 0) return selectAll(herd.nodes);
  const matcher = new Matcher(herd, now, query.terms, me);
  const rows = new Set<number>();
  const nodes: SelectedNode[] = [];
  let count = 0;
  let slices = 0;
  for (const node of herd.nodes) {
    const found = node.devices.filter((_, position) => matcher.matches(node, position));
    if (found.length === 0 && !(node.devices.length === 0 && matcher.matches(node, null))) continue;
    for (const { row, facts } of found) {
      rows.add(row);
      if (!facts.is_partitioned) count += 1;
      if (facts.kind === "slice") slices += 1;
    }
    nodes.push({ node, devices: withParents(node, found) });
  }
  return { isAll: false, nodes, count, slices, has: (row) => rows.has(row) };
}

const whole = new WeakMap<readonly NodeEntry[], Selection>();

/** Everything; the same object as before while the nodes are. */
function selectAll(all: readonly NodeEntry[]): Selection {
  let selection = whole.get(all);
  if (!selection) {
    const nodes = all.map((node) => ({ node, devices: node.devices }));
    const devices = all.flatMap(({ countable }) => countable);
    const slices = devices.filter(({ facts }) => facts.kind === "slice").length;
    whole.set(all, (selection = { isAll: true, nodes, count: devices.length, slices, has: () => true }));
  }
  return selection;
}

function withParents(node: NodeEntry, found: readonly DeviceEntry[]): readonly DeviceEntry[] {
  if (found.length === node.devices.length) return node.devices;
  const shown = new Set(found.map((device) => device.facts.uuid));
  for (const { facts } of found) if (facts.parent_uuid) shown.add(facts.parent_uuid);
  return node.devices.filter((device) => shown.has(device.facts.uuid));
}

class Matcher {
  readonly #herd: Herd;
  readonly #now: number;
  readonly #terms: readonly Term[];
  readonly #me: ReadonlySet<string>;

  constructor(herd: Herd, now: number, terms: readonly Term[], me: readonly string[]) {
    this.#herd = herd;
    this.#now = now;
    this.#terms = terms;
    this.#me = new Set(me.map((user) => user.toLowerCase()));
  }

  /** Whether a device is meant, by its position in the node; `null` asks for a node that has none. */
  matches(node: NodeEntry, position: number | null): boolean {
    const device = position === null ? null : (node.devices[position] ?? null);
    for (const term of this.#terms)
      if (this.#holds(term, node, device, position) === term.isNegated) return false;
    return true;
  }

  #holds(term: Term, node: NodeEntry, device: DeviceEntry | null, position: number | null): boolean {
    switch (term.kind) {
      case "text": {
        const words = wordsOf(node);
        if (words.node.includes(term.text)) return true;
        if (device === null || position === null) return false;
        const size = SIZE.exec(term.text);
        // A slice is called after the GPU it is cut from, "A100 80GB 1g.10gb", but does not have its memory.
        if (size && device.facts.kind === "slice")
          return compareSize(device.facts.memory_total_bytes ?? null, "=", Number(size[1]) * 2 ** 30);
        return !!words.devices[position]?.includes(term.text);
      }
      case "state":
        // A GPU that is split is had through its slices: it has no state of its own.
        return !device?.facts.is_partitioned && term.states.includes(this.#state(node, device));
      case "trouble":
        return (
          (!device?.facts.is_partitioned && TROUBLED_STATES.has(this.#state(node, device))) ||
          node.problems.length > 0 ||
          node.notes.length > 0 ||
          (device !== null && device.problems.length > 0)
        );
      case "slice":
        return device?.facts.kind === "slice";
      case "mine":
        return usedBy(device, (user) => this.#me.has(user));
      case "place":
        return device !== null && isCalled(node, term.node) && isAt(device.label, term.parts);
      case "name":
        return this.#named(term.field, term.names, node, device);
      case "quantity":
        return device !== null && this.#measures(term, node, device);
    }
  }

  /** A node without devices has the state that the map shows of it. */
  #state(node: NodeEntry, device: DeviceEntry | null): DeviceState {
    return device === null ? bareState(this.#herd, node) : this.#herd.deviceState(device.row);
  }

  #named(
    field: "user" | "host" | "type",
    names: readonly SearchName[],
    node: NodeEntry,
    device: DeviceEntry | null,
  ): boolean {
    return names.some((name) => {
      if (field === "host")
        return (
          fits(name, node.name) || fits(name, node.id) || (!!node.host && fits(name, node.host.hostname))
        );
      if (device === null) return false;
      if (field === "user") return usedBy(device, (user) => fits(name, user));
      if (name.isExact) return name.text === device.shortName.toLowerCase();
      return squeeze(`${device.shortName}\n${device.facts.name}`).includes(squeeze(name.text));
    });
  }

  #measures(term: Extract<Term, { kind: "quantity" }>, node: NodeEntry, device: DeviceEntry): boolean {
    const { quantity, comparison, value } = term;
    const herd = this.#herd;
    const total = device.facts.memory_total_bytes ?? null;
    switch (quantity) {
      case "mem":
        return compareSize(total, comparison, value);
      case "used":
        return compare(herd.device("memory_used_bytes", device.row), comparison, value);
      case "left": {
        const used = herd.device("memory_used_bytes", device.row);
        return compare(total === null || used === null ? null : total - used, comparison, value);
      }
      case "util":
        return compare(herd.device("utilization_gpu", device.row), comparison, value);
      case "temp":
        return compare(herd.device("temperature_celsius", device.row), comparison, value);
      case "power":
        return compare(herd.device("power_watts", device.row), comparison, value);
      case "idle":
        if (!IDLE_STATES.has(herd.deviceState(device.row))) return false;
        return compare(this.#lasts(device), comparison, value);
      case "for":
        return compare(this.#lasts(device), comparison, value);
      case "free":
        return compare(
          node.countable.reduce((sum, { row }) => sum + (herd.deviceState(row) === "free" ? 1 : 0), 0),
          comparison,
          value,
        );
    }
  }

  /** For how long the device has been in its state. */
  #lasts(device: DeviceEntry): Known {
    const since = this.#herd.device("since", device.row);
    return since === null ? null : this.#now - since;
  }
}

const isCalled = ({ name, id, host }: NodeEntry, wanted: string): boolean =>
  [name, id, host?.hostname].some((each) => each?.toLowerCase() === wanted);

/** A GPU is meant with its slices. */
const isAt = (label: string, parts: readonly (string | readonly [number, number])[]): boolean =>
  parts.some((part) =>
    typeof part === "string"
      ? label === part || label.startsWith(`${part}.`)
      : part[0] <= parseInt(label, 10) && parseInt(label, 10) <= part[1],
  );

/** Unknown is neither more nor less than anything. */
function compare(value: Known, comparison: Comparison, limit: number): boolean {
  if (value === null) return false;
  if (comparison === ">") return value > limit;
  if (comparison === ">=") return value >= limit;
  if (comparison === "<") return value < limit;
  if (comparison === "<=") return value <= limit;
  return Math.abs(value - limit) < 1e-9;
}

function compareSize(value: Known, comparison: Comparison, limit: number): boolean {
  const least = limit * (1 - SIZE_TOLERANCE);
  const most = limit * (1 + SIZE_TOLERANCE);
  if (comparison === ">") return compare(value, ">", most);
  if (comparison === ">=") return compare(value, ">=", least);
  if (comparison === "<") return compare(value, "<", least);
  if (comparison === "<=") return compare(value, "<=", most);
  return compare(value, ">=", least) && compare(value, "<=", most);
}

function usedBy(device: DeviceEntry | null, isMeant: (lowerCaseUser: string) => boolean): boolean {
  return !!device?.uses.some(({ process }) => process.user != null && isMeant(process.user.toLowerCase()));
}

/** A name to the letter, or with `*` for any part of it. */
function fits(name: SearchName, value: string): boolean {
  const lower = value.toLowerCase();
  if (name.isExact || !name.text.includes("*")) return lower === name.text;
  // Piece by piece rather than as a regular expression, whose cost a crafted name could drive up.
  const pieces = name.text.split("*");
  const first = pieces.shift() ?? "";
  const last = pieces.pop() ?? "";
  if (lower.length < first.length + last.length || !lower.startsWith(first) || !lower.endsWith(last))
    return false;
  let at = first.length;
  const end = lower.length - last.length;
  for (const piece of pieces) {
    const found = lower.indexOf(piece, at);
    if (found < 0 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}

/** "RTX 4090", "rtx-4090" and "rtx4090" are the same to someone who searches. */
const squeeze = (text: string): string => text.toLowerCase().replaceAll(/[ _-]/g, "");

function wordsOf(node: NodeEntry): Words {
  const kept = wordsByNode.get(node);
  if (kept) return kept;
  const { host } = node;
  const words: Words = {
    node: [node.name, host?.hostname, ...(host?.addresses ?? []).map(({ ip }) => ip)]
      .join("\n")
      .toLowerCase(),
    devices: node.devices.map(({ facts, shortName, uses }) =>
      [
        shortName,
        facts.name,
        squeeze(shortName),
        facts.uuid,
        facts.profile,
        ...uses.flatMap(({ process }) => [process.user, process.job, process.container]),
      ]
        .join("\n")
        .toLowerCase(),
    ),
  };
  wordsByNode.set(node, words);
  return words;
}
