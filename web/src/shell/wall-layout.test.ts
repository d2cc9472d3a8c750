import { describe, expect, it } from "vitest";
import { layOutWall, tilesPerRow } from "./wall-layout";

describe("a screen on the wall", () => {
  it.each([1, 5, 24, 36])("shows %i nodes at once", (count) => {
    const { columns, rows, pages } = layOutWall(count, 1840, 700, 1080);
    expect(pages).toBe(1);
    expect(columns * rows).toBeGreaterThanOrEqual(count);
  });

  it.each([
    [200, 1840, 700, 1080],
    [1000, 3680, 1400, 2160],
    [30, 1000, 1500, 1080],
    [7, 350, 300, 390],
  ])("leaves out none of %i nodes", (count, width, height, screen) => {
    const { columns, rows, pages } = layOutWall(count, width, height, screen);
    expect(columns * rows * pages).toBeGreaterThanOrEqual(count);
    expect(columns * rows * (pages - 1)).toBeLessThan(count);
  });

  it("lays a screen of twice the pixels out the same", () => {
    expect(layOutWall(100, 3680, 1400, 2160)).toEqual(layOutWall(100, 1840, 700, 1080));
  });

  it("keeps a node's GPUs in two rows at most", () => {
    expect([1, 8, 9, 16, 22].map(tilesPerRow)).toEqual([8, 8, 5, 8, 11]);
  });
});
