import { describe, expect, it } from "vitest";
import {
  hasBand,
  knownSpan,
  middles,
  ontoGrid,
  picked,
  reachOf,
  stacked,
  stepAt,
  summaryOf,
  withGaps,
} from "./history-series";

const GRID = { times: [0, 60, 120, 180], step: 60 };

describe("a grid", () => {
  it("says where steps were left out, so that no line crosses them", () => {
    const { grid, sources } = withGaps({ times: [0, 60, 300, 360], step: 60 });
    expect(grid.times).toEqual([0, 60, 120, 300, 360]);
    expect(picked([1, 2, 3, null], sources)).toEqual([1, 2, null, 3, null]);
    expect(withGaps(GRID).sources).toEqual([0, 1, 2, 3]);
  });

  it("is drawn in the middle of its steps", () => {
    expect(middles(GRID)).toEqual([30, 90, 150, 210]);
  });

  it("finds the step that holds a moment, else the nearest", () => {
    expect(stepAt(GRID, 0)).toBe(0);
    expect(stepAt(GRID, 59.9)).toBe(0);
    expect(stepAt(GRID, 60)).toBe(1);
    expect(stepAt(GRID, -100)).toBe(0);
    expect(stepAt(GRID, 9999)).toBe(3);
    expect(stepAt({ times: [0, 600], step: 60 }, 500)).toBe(1);
    expect(stepAt({ times: [0, 600], step: 60 }, 100)).toBe(0);
    expect(stepAt({ times: [], step: 60 }, 1)).toBeNull();
  });
});

describe("another period on the same grid", () => {
  it("is shifted step by step", () => {
    const before = { times: [-240, -180, -120, -60], step: 60 };
    expect(ontoGrid(before, GRID, 240)).toEqual([0, 1, 2, 3]);
  });

  it("may be coarser, and says nothing where it has no step", () => {
    expect(ontoGrid({ times: [0], step: 120 }, GRID)).toEqual([0, 0, -1, -1]);
    expect(picked([0.5], [0, 0, -1, -1], 0.01)).toEqual([50, 50, null, null]);
    expect(ontoGrid({ times: [], step: 60 }, GRID)).toEqual([-1, -1, -1, -1]);
  });
});

describe("values", () => {
  it("reach as far as the chart or further", () => {
    expect(reachOf([[null, 5], [120]], 0, 100)).toEqual([0, 120]);
    expect(reachOf([], 0, 100)).toEqual([0, 100]);
  });

  it("stand on each other, with gaps where nothing is known", () => {
    expect(
      stacked([
        [1, null, 2],
        [3, null, null],
      ]),
    ).toEqual([
      [1, null, 2],
      [4, null, 2],
    ]);
    expect(stacked([])).toEqual([]);
  });

  it("are summed up without their gaps, and unknown is not zero", () => {
    const series = { mean: [1, null, 3], low: [0, null, 2], high: [4, null, 9] };
    expect(summaryOf(series)).toEqual({ mean: 2, low: 0, high: 9, known: 2 / 3 });
    expect(summaryOf({ mean: [null], low: [null], high: [null] })).toBeNull();
    expect(hasBand(series)).toBe(true);
    expect(hasBand({ mean: [1, null], low: [1, null], high: [1, null] })).toBe(false);
  });

  it("are known from one moment to another", () => {
    expect(
      knownSpan(GRID, [
        [null, 1, null, null],
        [null, null, 2, null],
      ]),
    ).toEqual({ from: 60, to: 180 });
    expect(knownSpan(GRID, [[null, null, null, null]])).toBeNull();
    expect(knownSpan({ times: [], step: 1 }, [])).toBeNull();
  });
});
