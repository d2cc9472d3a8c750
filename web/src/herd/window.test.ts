import { describe, expect, it } from "vitest";
import { offsetOf, windowOf } from "./window";

const heights = Array.from({ length: 100 }, (_, i) => (i % 2 ? 300 : 50));
const sum = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0);

describe("windowOf", () => {
  it.each([0, 1000, 7000, 16_000, -500, 99_999])(
    "draws what is seen from %i on, and keeps the height",
    (top) => {
      const { from, to, above, below } = windowOf(heights, top, top + 900, 200);
      expect(above + sum(heights.slice(from, to)) + below).toBe(sum(heights));
      expect(above).toBe(offsetOf(heights, from));
      if (top >= 0 && top < sum(heights)) {
        expect(above).toBeLessThanOrEqual(top);
        expect(above + sum(heights.slice(from, to))).toBeGreaterThanOrEqual(
          Math.min(top + 900, sum(heights)),
        );
      }
      expect(to - from).toBeLessThan(20);
    },
  );

  it("has nothing to draw of nothing", () => {
    expect(windowOf([], 0, 900, 200)).toEqual({ from: 0, to: 0, above: 0, below: 0 });
  });
});
