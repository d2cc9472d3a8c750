/** The memory of a device by process: what the stacked bar shows. */
import type { Known } from "./columns";
import type { UseEntry } from "./node";

export interface MemorySegment {
  /** `null` for memory that no process accounts for. */
  readonly use: UseEntry | null;
  readonly bytes: number;
  /** As parts of the device's memory, 0 to 1. */
  readonly start: number;
  readonly share: number;
}

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
  const claimed = uses
    .map((use) => ({ use, bytes: bytesOf(use) ?? 0 }))
    .filter(({ bytes }) => bytes > 0)
    .sort((a, b) => compareUsers(a.use.process.user, b.use.process.user) || b.bytes - a.bytes);
  const segments: MemorySegment[] = [];
  let start = 0;
  const add = (use: UseEntry | null, bytes: number): void => {
    const share = Math.min(1 - start, bytes / total);
    if (share <= 0) return;
    segments.push({ use, bytes, start, share });
    start += share;
  };
  for (const { use, bytes } of claimed) add(use, bytes);
  const rest = (used ?? 0) - claimed.reduce((sum, { bytes }) => sum + bytes, 0);
  if (rest / total > WORTH_SHOWING) add(null, rest);
  return segments;
}

function compareUsers(a: string | null | undefined, b: string | null | undefined): number {
  const [left, right] = [a ?? "\uffff", b ?? "\uffff"];
  return left < right ? -1 : left > right ? 1 : 0;
}
