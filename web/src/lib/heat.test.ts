import { describe, expect, it } from "vitest";
import { cellAt, layOut, neighbour, nodeAt } from "./heat-layout";
import { lookOf } from "./heat-paint";
import { DEVICE_STATES } from "./types";

const herd = (nodes: number, devices: number): number[] => Array.from({ length: nodes }, () => devices);

describe("layOut", () => {
  it("gives a small herd large cells with names, a large one small cells in the same room", () => {
    const small = layOut(herd(4, 8), 1200, 320);
    const large = layOut(herd(1000, 8), 1200, 460);
    expect(small.cellWidth).toBeGreaterThanOrEqual(20);
    expect(small.hasLabels).toBe(true);
    expect(large.hasLabels).toBe(false);
    expect(large.cellWidth).toBeLessThan(10);
    expect(large.height).toBeLessThanOrEqual(460);
  });

  it.each([320, 390, 800, 1248])("stays inside a width of %i, without overlaps", (width) => {
    const layout = layOut([8, 22, 4, 0, 1, 8, 8, 3], width, 300);
    const seen = new Set<string>();
    layout.x.forEach((x, i) => {
      expect(x + layout.cellWidth).toBeLessThanOrEqual(width);
      expect((layout.y[i] ?? 0) + layout.cellHeight).toBeLessThanOrEqual(layout.height);
      seen.add(`${x} ${layout.y[i]}`);
    });
    expect(seen.size).toBe(54);
  });

  it("finds the cell and the name under a point", () => {
    const layout = layOut([4, 4], 600, 300);
    for (let i = 0; i < 8; i += 1)
      expect(cellAt(layout, (layout.x[i] ?? 0) + 3, (layout.y[i] ?? 0) + 3)).toBe(i);
    expect(cellAt(layout, 599, 1)).toBeNull();
    expect(nodeAt(layout, (layout.nodes[1]?.x ?? 0) + 2, 3)).toBe(1);
    expect(nodeAt(layout, 2, layout.height - 1)).toBeNull();
  });

  it("walks by arrow keys and stays inside", () => {
    const layout = layOut(herd(12, 8), 600, 2000);
    const below = neighbour(layout, 0, "ArrowDown");
    expect(layout.x[below]).toBe(layout.x[0]);
    expect(layout.y[below]).toBeGreaterThan(layout.y[0] ?? 0);
    expect(neighbour(layout, below, "ArrowUp")).toBe(0);
    expect(neighbour(layout, 0, "ArrowUp")).toBe(0);
    expect(neighbour(layout, 0, "ArrowLeft")).toBe(0);
    expect(neighbour(layout, 0, "ArrowRight")).toBe(1);
    expect(neighbour(layout, 5, "End")).toBe(95);
    expect(neighbour(layout, 95, "ArrowRight")).toBe(95);
    expect(neighbour(layout, 95, "Home")).toBe(0);
  });
});

describe("lookOf", () => {
  it("tells states, levels, unknown levels and dimmed cells apart", () => {
    const looks = DEVICE_STATES.map((state) => lookOf(state, 0.5, false));
    looks.push(lookOf("busy", 0, false), lookOf("busy", 1, false), lookOf("busy", NaN, false));
    looks.push(...DEVICE_STATES.map((state) => lookOf(state, 0.5, true)));
    expect(new Set(looks).size).toBe(looks.length);
    expect(Math.max(...looks)).toBeLessThan(255);
  });

  it("shows the level of busy devices only, and small changes not at all", () => {
    expect(lookOf("free", 0.1, false)).toBe(lookOf("free", 0.9, false));
    expect(lookOf("busy", 0.501, false)).toBe(lookOf("busy", 0.502, false));
    expect(lookOf("busy", 7, false)).toBe(lookOf("busy", 1, false));
  });
});
