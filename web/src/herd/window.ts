/** Which blocks of a long list need to be in the document: those near what is seen. Pixels. */

export interface Window {
  /** The first block that is drawn, and the first one after it that is not. */
  readonly from: number;
  readonly to: number;
  /** The height of what is left out. */
  readonly above: number;
  readonly below: number;
}

/** `top` and `bottom` are the edges of what is seen, counted from the top of the list. */
export function windowOf(heights: readonly number[], top: number, bottom: number, margin: number): Window {
  let from = 0;
  let above = 0;
  while (from < heights.length && above + (heights[from] ?? 0) < top - margin) {
    above += heights[from] ?? 0;
    from += 1;
  }
  let to = from;
  let end = above;
  while (to < heights.length && end < bottom + margin) {
    end += heights[to] ?? 0;
    to += 1;
  }
  let below = 0;
  for (let i = to; i < heights.length; i += 1) below += heights[i] ?? 0;
  return { from, to, above, below };
}

/** Where a block begins. */
export function offsetOf(heights: readonly number[], block: number): number {
  let offset = 0;
  for (let i = 0; i < block; i += 1) offset += heights[i] ?? 0;
  return offset;
}
