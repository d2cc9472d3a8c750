import { describe, expect, it } from "vitest";
import { cursorKey } from "./time-controls";

const GRID = { times: Array.from({ length: 30 }, (_, i) => i * 60), step: 60 };
const SPAN = { from: 0, to: 1800 };
const press = (key: string, time: number | null, shiftKey = false): unknown =>
  cursorKey({ key, shiftKey }, GRID, SPAN, time);

describe("a key on a chart", () => {
  it.each([
    ["ArrowRight", 90, 150],
    ["ArrowLeft", 90, 30],
    ["ArrowLeft", 30, 30],
    ["PageUp", 30, 630],
    ["PageDown", 90, 30],
    ["Home", 900, 30],
    ["End", 30, 1770],
    ["ArrowLeft", null, 1710],
  ])("%s leads from %s to %d", (key, from, to) => {
    expect(press(key, from)).toEqual({ kind: "look", time: to });
  });

  it("moves and zooms the range, or lets go", () => {
    expect(press("ArrowLeft", 90, true)).toEqual({ kind: "pan", by: -1 });
    expect(press("ArrowRight", null, true)).toEqual({ kind: "pan", by: 1 });
    expect(press("+", 90)).toEqual({ kind: "zoom", by: 0.5 });
    expect(press("-", 90)).toEqual({ kind: "zoom", by: 2 });
    expect(press("Escape", 90)).toEqual({ kind: "leave" });
    expect(press("Tab", 90)).toBeNull();
    expect(cursorKey({ key: "Home", shiftKey: false }, { times: [], step: 1 }, SPAN, null)).toBeNull();
  });
});
