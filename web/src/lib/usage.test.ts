import { describe, expect, it } from "vitest";
import { changeOf, filterRows, isMissing, joinMissing, ranked, sortRows } from "./usage";
import { figuresOf } from "../usage/figures";
import { figures, report, row } from "./usage.fixture";
import { amount, cost, energy, signedPercent } from "./usage-format";

const ROWS = [
  row("user10", { gpu_hours: 5, efficiency: null }),
  row(null, { gpu_hours: 30, efficiency: 0.2 }),
  row("user2", { gpu_hours: 5, efficiency: 0.9, energy_kwh: null }),
];
const keys = (rows: readonly { key: string | null }[]): (string | null)[] => rows.map(({ key }) => key);

describe("rows of use", () => {
  it("are ranked by GPU-hours, whatever they are sorted by", () => {
    const rows = ranked(ROWS);
    expect(rows.map(({ key, rank }) => [rank, key])).toEqual([
      [1, null],
      [2, "user2"],
      [3, "user10"],
    ]);
    expect(sortRows(rows, "name", false).map(({ rank }) => rank)).toEqual([2, 3, 1]);
  });

  it("are sorted most first, equal ones by name as people count", () => {
    expect(keys(sortRows(ROWS, "hours", false))).toEqual([null, "user2", "user10"]);
    expect(keys(sortRows(ROWS, "hours", true))).toEqual(["user2", "user10", null]);
  });

  it("have what is unknown last, either way round", () => {
    expect(keys(sortRows(ROWS, "efficiency", false)).at(-1)).toBe("user10");
    expect(keys(sortRows(ROWS, "efficiency", true)).at(-1)).toBe("user10");
    expect(keys(sortRows(ROWS, "energy", true)).at(-1)).toBe("user2");
    expect(keys(sortRows(ROWS, "name", true))).toEqual(["user10", "user2", null]);
    expect(keys(sortRows(ROWS, "booked", false))).toEqual(["user2", "user10", null]);
  });

  it("are found by parts of their names", () => {
    expect(keys(filterRows(ROWS, "  USER 2 "))).toEqual(["user2"]);
    expect(filterRows(ROWS, "")).toBe(ROWS);
    expect(filterRows(ROWS, "nobody")).toEqual([]);
    expect(keys(filterRows([row("n-1", {}, { label: "gpu01" })], "gpu01"))).toEqual(["n-1"]);
  });
});

describe("what is missing", () => {
  const part = (start: number, end: number, reason = "gone"): Parameters<typeof joinMissing>[0][number] => ({
    start,
    end,
    reason,
  });

  it("is told once where parts touch", () => {
    expect(joinMissing([part(20, 30), part(0, 10), part(10, 20), part(30, 40, "cannot be read")])).toEqual([
      part(0, 30),
      part(30, 40, "cannot be read"),
    ]);
  });

  it("is seen in a step that it reaches into, not in one that it touches", () => {
    expect(isMissing([part(10, 20)], 15, 25)).toBe(true);
    expect(isMissing([part(10, 20)], 20, 30)).toBe(false);
  });
});

describe("numbers", () => {
  it.each([
    [null, "–"],
    [0, "0"],
    [0.001, "< 0.01"],
    [0.126, "0.13"],
    [1.26, "1.3"],
    [99.96, "100"],
    [12_345.6, "12,346"],
  ])("%s is %s", (value, told) => {
    expect(amount(value)).toBe(told);
  });

  it("have their units", () => {
    expect(energy(12.34)).toBe("12.3 kWh");
    expect(energy(123_456)).toBe("123 MWh");
    expect(energy(null)).toBe("–");
    expect(cost(12.3, "EUR")).toBe("12.3 EUR");
    expect(cost(null, "EUR")).toBe("–");
  });

  it("are compared with what they were", () => {
    expect(signedPercent(0.123)).toBe("+12 %");
    expect(signedPercent(-0.5)).toBe("−50 %");
    expect(signedPercent(0.001)).toBeNull();
    expect(changeOf(3, 2)).toBeCloseTo(0.5);
    expect(changeOf(3, 0)).toBeNull();
    expect(changeOf(null, 2)).toBeNull();
  });
});

describe("the figures on top", () => {
  it("say what there was, of how much, and what it was before", () => {
    const before = report({
      totals: figures({ gpu_hours: 80, efficiency: 0.7, idle_hours: 25, energy_kwh: 60 }),
    });
    const [hours, efficiency, waste, used] = figuresOf(report(), before);
    expect(hours).toMatchObject({ value: "100", was: "80", change: "+25 %" });
    expect(hours?.details).toEqual(["25 % of 400 available GPU-hours"]);
    expect(efficiency).toMatchObject({ value: "74 %", was: "70 %", change: "+4 points" });
    expect(waste).toMatchObject({ value: "25", was: "25", change: null });
    expect(used).toMatchObject({ value: "30", unit: "kWh", was: "60 kWh", change: "−50 %" });
  });

  it("never take the unknown for nothing", () => {
    const unknown = report({
      capacity_hours: null,
      totals: figures({ efficiency: null, energy_kwh: null, mean_utilization: null }),
    });
    const [hours, efficiency, , used] = figuresOf(unknown, null);
    expect(hours?.details).toEqual(["available GPU-hours unknown"]);
    expect(hours).toMatchObject({ was: null, change: null });
    expect(efficiency).toMatchObject({ value: "–", was: null, change: null });
    expect(used).toMatchObject({ value: "–", details: ["no device reports its power"] });
    expect(used?.unit).toBeUndefined();
  });

  it("tell costs where there are prices", () => {
    const [, , waste, used] = figuresOf(
      report({ currency: "EUR", totals: figures({ cost: 120, idle_cost: 30 }) }),
      null,
    );
    expect(waste?.details).toContain("cost 30 EUR");
    expect(used?.details).toContain("total cost 120 EUR");
  });
});
