/** How long a device was in which state. */
import type { StateSpan } from "./history-types";
import type { Span } from "./timeline";

export interface StateShare {
  readonly state: string;
  /** Of what is known, 0 to 1. */
  readonly share: number;
}

/** Most first, of the time of which anything is known. */
export function stateShares(states: readonly StateSpan[], { from, to }: Span): StateShare[] {
  const seconds = new Map<string, number>();
  let known = 0;
  for (const { start, end, state } of states) {
    const length = Math.min(end, to) - Math.max(start, from);
    if (length <= 0) continue;
    known += length;
    seconds.set(state, (seconds.get(state) ?? 0) + length);
  }
  return [...seconds]
    .map(([state, length]) => ({ state, share: length / known }))
    .sort((a, b) => b.share - a.share);
}
