import { describe, expect, it } from "vitest";
import {
  formatRange,
  panned,
  parseRange,
  problemOf,
  rangeOf,
  refreshSeconds,
  spanOf,
  zoomed,
} from "./history-range";
import { DAY, HOUR } from "./zone";

const NOW = 1_763_300_000;

describe("a range in the address", () => {
  it.each(["1h", "6h", "24h", "7d", "30d", "90d", "1y", "1763000000-1763086400"])("survives %s", (text) => {
    const range = parseRange(text);
    expect(range && formatRange(range)).toBe(text);
  });

  it.each([
    "",
    "2h",
    "7D",
    "-",
    "1-",
    "5-5",
    "1763086400-1763000000",
    "100-130",
    "0-4294967295",
    "1e3-2e3",
    "1.5-900",
  ])("is not read from %s", (text) => {
    expect(parseRange(text)).toBeNull();
  });

  it("ends now, or when it says, but never later than now", () => {
    expect(spanOf({ kind: "last", name: "1h", seconds: HOUR }, NOW)).toEqual({ from: NOW - HOUR, to: NOW });
    expect(spanOf({ kind: "fixed", from: NOW - 900, to: NOW + 900 }, NOW)).toEqual({
      from: NOW - 900,
      to: NOW,
    });
    expect(spanOf({ kind: "fixed", from: NOW + 100, to: NOW + 900 }, NOW).to).toBe(NOW + 160);
  });

  it("says what is wrong with what was typed", () => {
    expect(problemOf({ from: NOW, to: NOW - 1 }, NOW)).toBe("order");
    expect(problemOf({ from: NOW - 10, to: NOW }, NOW)).toBe("short");
    expect(problemOf({ from: 0, to: NOW }, NOW)).toBe("long");
    expect(problemOf({ from: NOW + 10, to: NOW + HOUR }, NOW)).toBe("future");
    expect(problemOf({ from: NOW - DAY, to: NOW }, NOW)).toBeNull();
  });
});

describe("moving about in time", () => {
  const day = { from: NOW - DAY, to: NOW };

  it("goes half a length back, and comes back to now by name", () => {
    const back = panned(day, -1, NOW);
    expect(back).toEqual({ kind: "fixed", from: NOW - 1.5 * DAY, to: NOW - DAY / 2 });
    expect(panned(spanOf(back, NOW), 1, NOW)).toEqual({ kind: "last", name: "24h", seconds: DAY });
    expect(panned(day, 1, NOW)).toEqual({ kind: "last", name: "24h", seconds: DAY });
  });

  it("zooms around a moment, within bounds", () => {
    expect(zoomed(day, 0.5, NOW - DAY / 2, NOW)).toEqual({
      kind: "fixed",
      from: NOW - 0.75 * DAY,
      to: NOW - 0.25 * DAY,
    });
    const least = zoomed({ from: NOW - 300, to: NOW - 240 }, 0.5, NOW - 240, NOW);
    expect(least.kind === "fixed" && least.to - least.from).toBe(60);
    expect(zoomed({ from: 0, to: NOW }, 2, NOW, NOW)).toMatchObject({ to: NOW });
  });

  it("takes a span that ends about now for the preset it is as long as", () => {
    expect(rangeOf({ from: NOW - 7 * DAY - 60, to: NOW - 30 }, NOW)).toMatchObject({ name: "7d" });
    expect(rangeOf({ from: NOW - 8 * DAY, to: NOW }, NOW).kind).toBe("fixed");
  });

  it("asks again no more often than there can be news", () => {
    expect(refreshSeconds(5)).toBe(10);
    expect(refreshSeconds(120)).toBe(120);
    expect(refreshSeconds(86_400)).toBe(900);
  });
});
