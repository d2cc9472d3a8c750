/**
 * One stable colour per user, everywhere: told from the name alone, so that it is the same on every page, in every
 * browser and after every restart.
 *
 * The hues keep away from those of the states (free, busy, held idle, booked, fault); `tokens.css` turns a hue into a
 * fill and an ink for each theme, with at least 4.5:1 between the two. Use it as
 * `<span class="user-colour" style:--user-hue={hue} style:--user-tone={tone}>`.
 */

export interface UserColour {
  /** Degrees in OKLCH. */
  readonly hue: number;
  /** 0 is pale, 1 is deep: tells apart users of one hue. */
  readonly tone: 0 | 1;
}

/** Clay, olive, leaf, teal, sky, indigo, pink, rose. */
const HUES = [42, 112, 134, 200, 226, 280, 345, 2] as const;

export function userColour(name: string): UserColour {
  const hash = hashOf(name);
  return { hue: HUES[hash % HUES.length] ?? HUES[0], tone: (hash >>> 8) & 1 ? 1 : 0 };
}

/** FNV-1a with a final mix: names that differ in one digit, such as user01 and user02, must land far apart. */
function hashOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i += 1) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
