/** The memory of a device by process: what the stacked bar shows. */
import type { Known } from "./columns";
import type { UseEntry } from "./node";

export interface MemorySegment {
  /** `null` for memory that no process accounts for, and for many small processes together. */
  readonly use: UseEntry | null;
  /** How many small processes this is the memory of. */
  readonly others: number;
  readonly bytes: number;
  /** As parts of the device's memory, 0 to 1. */
  readonly start: number;
  readonly share: number;
}

/** A bar of more parts than these shows nothing any more, and takes its time to be drawn. */
const MOST_PROCESSES = 24;
/** Below this, the rest is rounding and the driver's own. */
const WORTH_SHOWING = 0.005;

/**
 * Segments from left to right, the processes of one user side by side. Processes may claim more than the device says
 * is used, or even has; the bar never grows beyond its end.
 */
export function memorySegments(
  uses: readonly UseEntry[],
  bytesOf: (use: UseEntry) => Known,
  used: Known,
  total: Known,
): readonly MemorySegment[] {
  if (total === null || total <= 0) return [];
  const all = uses
    .map((use) => ({ use, bytes: bytesOf(use) ?? 0 }))
    .filter(({ bytes }) => bytes > 0)
    .sort((a, b) => b.bytes - a.bytes);
  const small = all.slice(MOST_PROCESSES);
  const claimed = all
    .slice(0, MOST_PROCESSES)
    .sort((a, b) => compareUsers(a.use.process.user, b.use.process.user) || b.bytes - a.bytes);
  const sum = (list: typeof all): number => list.reduce((bytes, one) => bytes + one.bytes, 0);
  const segments: MemorySegment[] = [];
  let start = 0;
  const add = (use: UseEntry | null, bytes: number, others = 0): void => {
    const share = Math.min(1 - start, bytes / total);
    if (share <= 0) return;
    segments.push({ use, others, bytes, start, share });
    start += share;
  };
  for (const { use, bytes } of claimed) add(use, bytes);
  if (small.length > 0) add(null, sum(small), small.length);
  const rest = (used ?? 0) - sum(all);
  if (rest / total > WORTH_SHOWING) add(null, rest);
  return segments;
}

function compareUsers(a: string | null | undefined, b: string | null | undefined): number {
  const [left, right] = [a ?? "\uffff", b ?? "\uffff"];
  return left < right ? -1 : left > right ? 1 : 0;
}
