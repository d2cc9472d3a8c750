import { describe, expect, it } from "vitest";
import { hourMap, overTime } from "./usage.fixture";
import {
  heatTop,
  labelled,
  layersOf,
  moveHour,
  moveStep,
  rankHours,
  scaleTo,
  shareBelow,
  stepLabel,
  stepName,
  stepSums,
} from "./usage-plot";
import { readMinute } from "./zone";

describe("use over time", () => {
  it("has a layer for each that used something, and one for the others", () => {
    const layers = layersOf(overTime(), "gpu_hours", "all others");
    expect(layers.map(({ label, kind, total }) => [label, kind, total])).toEqual([
      ["Ada", "key", 30],
      ["unknown", "unknown", 3],
      ["all others", "others", 6],
    ]);
    expect(stepSums(layers, 3)).toEqual([11, 25, 3]);
    expect(layersOf(overTime(), "busy_hours", "").map(({ label }) => label)).toEqual(["Ada"]);
  });

  it.each([
    [0, [0, 1]],
    [1, [0, 0.25, 0.5, 0.75, 1]],
    [25, [0, 10, 20, 30]],
    [95, [0, 25, 50, 75, 100]],
    [1201, [0, 500, 1000, 1500]],
    [0.07, [0, 0.02, 0.04, 0.06, 0.08]],
  ])("is drawn up to %d with marks at %j", (greatest, marks) => {
    expect(scaleTo(greatest)).toEqual(marks);
  });

  it("labels steps at even distances", () => {
    expect(labelled(7, 7)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(labelled(30, 7)).toEqual([0, 5, 10, 15, 20, 25]);
    expect(labelled(0, 7)).toEqual([]);
  });

  it("names steps in the zone", () => {
    const at = readMinute("2026-11-16 00:00", "Asia/Tokyo") ?? 0;
    expect(stepLabel(at, "day", "Asia/Tokyo")).toBe("16 Nov");
    expect(stepLabel(at, "month", "Asia/Tokyo")).toBe("Nov 2026");
    expect(stepLabel(at, "hour", "Asia/Tokyo")).toBe("00:00");
    expect(stepName(at, "week", "Asia/Tokyo")).toBe("Week of Mon 16 Nov");
  });

  it("is walked through by keys", () => {
    expect(moveStep(null, 30, "ArrowLeft")).toBe(29);
    expect(moveStep(null, 30, "ArrowRight")).toBe(0);
    expect(moveStep(29, 30, "ArrowRight")).toBe(29);
    expect(moveStep(3, 30, "PageDown")).toBe(0);
    expect(moveStep(3, 30, "x")).toBeNull();
    expect(moveStep(null, 0, "Home")).toBeNull();
  });
});

describe("the map of hours", () => {
  const map = hourMap((day, hour) => (day === 6 ? null : (day + hour) / 60));

  it("knows the busiest and the quietest hour, and leaves out what nobody knows", () => {
    const order = rankHours(map, "busy");
    expect(order).toHaveLength(6 * 24);
    expect(order[0]).toEqual({ day: 5, hour: 23, share: 28 / 60 });
    expect(order.at(-1)).toEqual({ day: 0, hour: 0, share: 0 });
    expect(rankHours(map, "held")).toEqual([]);
  });

  it("has colours up to a round share", () => {
    expect(heatTop(map, "busy")).toBeCloseTo(0.5);
    expect(heatTop(map, "held")).toBeCloseTo(0.1);
    expect(
      heatTop(
        hourMap(() => 1),
        "busy",
      ),
    ).toBe(1);
  });

  it("is walked through by keys", () => {
    expect(moveHour(0, 0, "ArrowUp")).toEqual([0, 0]);
    expect(moveHour(0, 0, "ArrowDown")).toEqual([1, 0]);
    expect(moveHour(2, 5, "End")).toEqual([2, 23]);
    expect(moveHour(2, 5, "a")).toBeNull();
  });
});

describe("the distribution", () => {
  it("says how much of it is below a bound", () => {
    expect(shareBelow([0, 0.05, 0.1, 1], [1, 2, 7], 0.1)).toBeCloseTo(0.3);
    expect(shareBelow([0, 1], [0], 0.1)).toBeNull();
  });
});
