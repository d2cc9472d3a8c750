/** What a viewer with an address that leads nowhere may have been looking for. */
import type { NodeEntry } from "../lib/node";
import type { Place } from "../lib/route.svelte";

export interface Suggestion {
  readonly label: string;
  readonly place: Partial<Place>;
}

const MOST = 3;

/** Nodes whose name or id has the asked one in it, or the other way round, or begins alike. */
export function similarNodes(nodes: readonly NodeEntry[], id: string): Suggestion[] {
  const asked = id.toLowerCase();
  const start = asked.slice(0, Math.max(3, asked.length - 2));
  return nodes
    .filter(({ name, id: other }) =>
      [name.toLowerCase(), other.toLowerCase()].some(
        (one) => one.includes(asked) || asked.includes(one) || one.startsWith(start),
      ),
    )
    .slice(0, MOST)
    .map(({ name, id: other }) => ({ label: name, place: { page: "node", id: other } }));
}
