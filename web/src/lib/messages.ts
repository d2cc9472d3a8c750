/**
 * Messages of the stream on their way from the worker that reads them to the page. Numbers travel as typed arrays, which
 * are handed over instead of copied; unknown is NaN in them. The inventory, which seldom changes, travels as text: to
 * parse it takes the page less than to copy what was parsed elsewhere.
 */
import type { FleetChange, NodeInventory, OwnCommands } from "./types";

type Table = "devices" | "device_details" | "device_states" | "hosts" | "host_states" | "uses";
type Columns<Lists> = {
  readonly [Name in keyof Lists]: Lists[Name] extends readonly (infer Value)[] ? ArrayLike<Value> : never;
};

/** What a herd takes: a `FleetChange` as it is in JSON, or one with typed arrays for numbers. */
export type HerdChange = Omit<FleetChange, Table> & { readonly [Name in Table]: Columns<FleetChange[Name]> };

/** A `HerdChange` whose nodes are still text: each a JSON list of some of them. */
export type PackedChange = Omit<HerdChange, "nodes"> & { readonly nodes: readonly string[] };

const NODES_PER_TEXT = 100;
/** Columns that say where the others belong: whole numbers, never unknown. */
const PLACES: ReadonlySet<string> = new Set(["row", "node", "position"]);

/** Read the text of a message; throws if it is none. Also gives the buffers that may be handed over with it. */
export function pack(text: string): { change: PackedChange; buffers: ArrayBuffer[] } {
  const change = JSON.parse(text) as FleetChange;
  if (typeof change.tick !== "number" || typeof change.time !== "number")
    throw new TypeError("not a message of the stream");
  const buffers: ArrayBuffer[] = [];
  const column = (name: string, list: readonly unknown[]): ArrayLike<unknown> => {
    if (!list.every((value) => value === null || typeof value === "number")) return list;
    const numbers = PLACES.has(name) ? new Int32Array(list.length) : new Float64Array(list.length);
    for (let i = 0; i < list.length; i += 1) numbers[i] = list[i] ?? NaN;
    buffers.push(numbers.buffer);
    return numbers;
  };
  const columns = <Lists extends object>(table: Lists): Columns<Lists> =>
    Object.fromEntries(
      Object.entries(table).map(([name, list]) => [name, column(name, list as unknown[])]),
    ) as Columns<Lists>;
  const nodes: string[] = [];
  for (let i = 0; i < change.nodes.length; i += NODES_PER_TEXT)
    nodes.push(JSON.stringify(change.nodes.slice(i, i + NODES_PER_TEXT)));
  return {
    change: {
      ...change,
      nodes,
      devices: columns(change.devices),
      device_details: columns(change.device_details),
      device_states: columns(change.device_states),
      hosts: columns(change.hosts),
      host_states: columns(change.host_states),
      uses: columns(change.uses),
    },
    buffers,
  };
}

export function unpack(change: PackedChange): HerdChange {
  return { ...change, nodes: change.nodes.flatMap((text) => JSON.parse(text) as NodeInventory[]) };
}

/** To the worker: open a connection, end one, or say that one of its messages has been taken. */
export type Order =
  | { readonly kind: "open"; readonly id: number; readonly url: string }
  | { readonly kind: "close" | "taken"; readonly id: number };

/** From the worker. `at` is a time of the monotonic clock that all threads share, in milliseconds. */
export type News =
  | { readonly kind: "change"; readonly id: number; readonly at: number; readonly change: PackedChange }
  | { readonly kind: "own"; readonly id: number; readonly own: OwnCommands }
  | { readonly kind: "closed" | "refused" | "unreadable"; readonly id: number };

/** The same in every thread of the page, unlike `performance.now()` alone. */
export const sharedNow = (): number => performance.timeOrigin + performance.now();
