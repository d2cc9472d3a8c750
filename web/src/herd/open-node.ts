/** What an open node shows: part of the page only where nodes are open. */
import type OpenNode from "./OpenNode.svelte";

/** The same promise from the first time on, unless that failed. */
let loading: Promise<{ default: typeof OpenNode }> | null = null;

export function loadOpenNode(): Promise<{ default: typeof OpenNode }> {
  loading ??= import("./OpenNode.svelte").catch((error: unknown) => {
    loading = null;
    throw error;
  });
  return loading;
}
