import { describe, expect, it } from "vitest";
import {
  chartData,
  type ChartData,
  clockTime,
  firstKnown,
  formatValue,
  horizontalRange,
  isFillingUp,
  lonePositions,
  summarize,
  verticalRange,
} from "./chart";

const DATA: ChartData = [
  [0, 5, 10],
  [10, null, 30],
  [null, null, null],
];

describe("charts", () => {
  it("write values with their unit, and unknown as a dash", () => {
    expect(formatValue(93.4, { unit: "%", digits: 0 })).toBe("93 %");
    expect(formatValue(1980, { unit: "MHz", digits: 0 })).toBe("1,980 MHz");
    expect(formatValue(58.24, { unit: "GiB", digits: 1 })).toBe("58.2 GiB");
    expect(formatValue(null, { unit: "%", digits: 0 })).toBe("–");
    expect(formatValue(undefined, { unit: "%", digits: 0 })).toBe("–");
  });

  it("go back as far as anything is known, two minutes at least and fifteen at most", () => {
    expect(horizontalRange(null, 10_000)).toEqual([9100, 10_000]);
    expect(horizontalRange(9990, 10_000)).toEqual([9880, 10_000]);
    expect(horizontalRange(9700, 10_000)).toEqual([9700, 10_000]);
    expect(horizontalRange(9000, 10_000)).toEqual([9100, 10_000]);
    expect([null, 9990, 9111, 9105].map((first) => isFillingUp(first, 10_000))).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });

  it("begin with the first moment of which anything is known", () => {
    const lines = new Map([
      ["a", [null, null, 3]],
      ["b", [null, 2, null]],
      ["c", [null, null, null]],
    ]);
    expect(firstKnown({ times: [0, 5, 10], lines })).toBe(5);
    expect(firstKnown({ times: [0, 5, 10], lines: new Map([["c", [null, null, null]]]) })).toBeNull();
    expect(firstKnown({ times: [], lines: new Map() })).toBeNull();
  });

  it("show at least the measure's own range, and more where a line goes beyond", () => {
    expect(verticalRange(DATA, { low: 0, high: 100 })).toEqual([0, 100]);
    expect(verticalRange(DATA, { low: 20, high: 25 })).toEqual([10, 30]);
    expect(verticalRange([[]], { low: 0, high: 1 })).toEqual([0, 1]);
  });

  it("know the values that no line leads to", () => {
    expect(lonePositions([1, null, 2, 3, null, 0, null])).toEqual([0, 5]);
    expect(lonePositions([null, 4])).toEqual([1]);
    expect(lonePositions([])).toEqual([]);
  });

  it("are drawn in their own unit, and unknown lines all along", () => {
    const minutes = { times: [0, 5], lines: new Map([["a", [2 ** 30, null]]]) };
    const lines = [
      { key: "a", label: "A" },
      { key: "b", label: "B" },
    ];
    expect(chartData(minutes, lines, { scale: 2 ** 30 })).toEqual([
      [0, 5],
      [1, null],
      [null, null],
    ]);
  });

  it("are summed up in words", () => {
    const lines = [
      { key: "a", label: "GPU 0" },
      { key: "b", label: "GPU 1" },
    ];
    expect(summarize(DATA, lines)).toEqual([
      { label: "GPU 0", last: 30, low: 10, high: 30 },
      { label: "GPU 1", last: null, low: null, high: null },
    ]);
  });

  it("tell time in the viewer's zone", () => {
    const noon = Date.UTC(2026, 0, 15, 12, 0, 7) / 1000;
    expect(clockTime(noon)).toMatch(/^\d\d:\d\d$/);
    expect(clockTime(noon, { seconds: true })).toMatch(/:07$/);
  });
});
