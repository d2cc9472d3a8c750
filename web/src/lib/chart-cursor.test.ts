import { describe, expect, it } from "vitest";
import { momentAt, positionOf, stepMoment } from "./chart-cursor";

const TIMES = Array.from({ length: 40 }, (_, i) => 1000 + 5 * i);
const LAST = TIMES.at(-1) ?? 0;

describe("the cursor of the charts", () => {
  it("stands at the moment that is nearest", () => {
    expect([0, 1000, 1002, 1003, 1197, 9999].map((time) => positionOf(TIMES, time))).toEqual([
      0, 0, 0, 1, 39, 39,
    ]);
    expect(positionOf(TIMES, "now")).toBe(39);
    expect(positionOf([], "now")).toBeNull();
    expect(positionOf([], 1000)).toBeNull();
  });

  it("moves by a moment, by a minute and to the ends", () => {
    expect(stepMoment(TIMES, "now", "ArrowLeft")).toBe(LAST - 5);
    expect(stepMoment(TIMES, LAST - 5, "ArrowRight")).toBe("now");
    expect(stepMoment(TIMES, "now", "PageDown")).toBe(LAST - 60);
    expect(stepMoment(TIMES, 1000, "PageUp")).toBe(1060);
    expect(stepMoment(TIMES, "now", "Home")).toBe(1000);
    expect(stepMoment(TIMES, 1000, "End")).toBe("now");
  });

  it("stays where it is at the ends", () => {
    expect(stepMoment(TIMES, "now", "ArrowRight")).toBe("now");
    expect(stepMoment(TIMES, "now", "PageUp")).toBe("now");
    expect(stepMoment(TIMES, 1000, "ArrowLeft")).toBe(1000);
    expect(stepMoment(TIMES, 1000, "PageDown")).toBe(1000);
  });

  it("gets over a gap that is longer than a minute", () => {
    expect(stepMoment([0, 5, 500, 505, 510], 500, "PageDown")).toBe(5);
    expect(stepMoment([0, 5, 500, 505, 510], 5, "PageUp")).toBe(500);
  });

  it("moves along when it stands at now, and only then", () => {
    expect(momentAt(TIMES, 39)).toBe("now");
    expect(momentAt(TIMES, 38)).toBe(LAST - 5);
    expect(positionOf([...TIMES, LAST + 5], momentAt(TIMES, 38))).toBe(38);
  });

  it("leaves other keys to others, and nothing to all of them where nothing is known", () => {
    expect(stepMoment(TIMES, "now", "p")).toBeNull();
    expect(stepMoment([], "now", "ArrowLeft")).toBeNull();
  });
});
