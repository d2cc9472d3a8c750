import { describe, expect, it } from "vitest";
import { customDays, isRange, monthsOf, rangeOf, stepsOf } from "./usage-range";
import { minuteText, readMinute } from "./zone";

const BERLIN = "Europe/Berlin";
const at = (text: string): number => readMinute(text, BERLIN) ?? NaN;
const NOW = at("2026-11-16 14:30");
const told = (text: string, now = NOW): string[] => {
  const { from, to, before } = rangeOf(text, BERLIN, now);
  return [from, to, before.from, before.to].map((moment) => minuteText(moment, BERLIN));
};

describe("a range", () => {
  it("of days begins with a day and is compared up to the same time of day", () => {
    expect(told("7d")).toEqual([
      "2026-11-10 00:00",
      "2026-11-16 14:30",
      "2026-11-03 00:00",
      "2026-11-09 14:30",
    ]);
  });

  it("keeps to days when clocks are changed in it", () => {
    expect(told("30d")[0]).toBe("2026-10-18 00:00");
    const { from, to } = rangeOf("30d", BERLIN, at("2026-11-16 00:00"));
    expect((to - from) / 3600).toBe(29 * 24 + 1);
  });

  it("of this month is compared with as much of the month before", () => {
    expect(told("month")).toEqual([
      "2026-11-01 00:00",
      "2026-11-16 14:30",
      "2026-10-01 00:00",
      "2026-10-16 14:30",
    ]);
  });

  it("does not compare more than the month before has", () => {
    expect(told("month", at("2026-03-31 12:00")).slice(2)).toEqual(["2026-02-01 00:00", "2026-03-01 00:00"]);
  });

  it("of the last month is whole, over the turn of a year", () => {
    expect(told("last-month", at("2027-01-05 10:00"))).toEqual([
      "2026-12-01 00:00",
      "2027-01-01 00:00",
      "2026-11-01 00:00",
      "2026-12-01 00:00",
    ]);
  });

  it("of chosen days has both of them, and nothing that is to come", () => {
    expect(told("2026-10-01_2026-10-14")).toEqual([
      "2026-10-01 00:00",
      "2026-10-15 00:00",
      "2026-09-17 00:00",
      "2026-10-01 00:00",
    ]);
    expect(told("2026-11-16_2026-11-20")[1]).toBe("2026-11-16 14:30");
  });

  it("that makes no sense is the usual one", () => {
    for (const text of [
      "2026-11-20_2026-11-21",
      "2026-10-14_2026-10-01",
      "nonsense",
      "2026-13-01_2026-13-02",
    ])
      expect(told(text), text).toEqual(told("30d"));
    expect(customDays("2026-10-14_2026-10-01")).toBeNull();
    expect(isRange("2026-10-01_2026-10-14")).toBe(true);
    expect(isRange("nonsense")).toBe(false);
  });
});

describe("steps", () => {
  const steps = (text: string): readonly string[] => stepsOf(rangeOf(text, BERLIN, NOW));

  it("are as fine as they can be told apart", () => {
    expect(steps("7d")).toEqual(["day"]);
    expect(steps("30d")).toEqual(["day", "week"]);
    expect(steps("90d")).toEqual(["day", "week", "month"]);
    expect(steps("year")).toEqual(["week", "month"]);
    expect(steps("2026-11-14_2026-11-15")).toEqual(["hour", "day"]);
  });
});

describe("months to have a report of", () => {
  it("begin with this one and end where history begins", () => {
    expect(monthsOf(NOW, BERLIN, at("2026-08-20 00:00"))).toEqual([
      "2026-11",
      "2026-10",
      "2026-09",
      "2026-08",
    ]);
    expect(monthsOf(NOW, BERLIN, NOW)).toEqual(["2026-11"]);
    expect(monthsOf(NOW, BERLIN, 0, 3)).toHaveLength(3);
  });
});
