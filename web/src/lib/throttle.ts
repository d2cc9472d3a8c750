/** Why a device runs below its clocks, in words. */
import type { Known } from "./columns";
import { strings } from "./strings";

/** The reasons that mean trouble, or "" when there are none; idling, chosen clocks and a reached power limit are not trouble. */
export function throttleWords(flags: Known): string {
  if (flags === null || flags === 0) return "";
  return Object.entries(strings.throttle)
    .filter(([bit]) => (flags & Number(bit)) !== 0)
    .map(([, word]) => word)
    .join(", ");
}
