/** Which lines of the timeline need to be in the document: those in sight, and some around. Pixels. */

const AROUND = 8;
/** So that a scroll by a few pixels changes nothing. */
const STRIDE = 4;

/** `top`: how far the first line is above the window's upper edge; `height`: the window's. */
export function windowRows(
  count: number,
  rowPixels: number,
  top: number,
  height: number,
): { readonly first: number; readonly last: number } {
  const floor = (row: number): number => Math.floor(row / STRIDE) * STRIDE;
  const first = Math.max(0, floor(top / rowPixels - AROUND));
  const last = Math.min(count, floor((top + height) / rowPixels + AROUND) + STRIDE);
  return { first: Math.min(first, count), last: Math.max(last, 0) };
}
