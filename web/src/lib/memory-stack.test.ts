import { describe, expect, it } from "vitest";
import { memorySegments } from "./memory-stack";
import type { UseEntry } from "./node";

const use = (position: number, user?: string): UseEntry => ({
  position,
  kind: "compute",
  process: user === undefined ? { pid: position } : { pid: position, user },
  isOwn: false,
});

describe("memorySegments", () => {
  const sizes = [10, 20, 30, null];
  const uses = [use(0, "ben"), use(1, "anna"), use(2), use(3, "cleo")];
  const bytesOf = ({ position }: UseEntry): number | null => sizes[position] ?? null;

  it("puts users side by side, unknown owners behind them, what nobody claims at the end", () => {
    const segments = memorySegments(uses, bytesOf, 80, 100);
    expect(segments.map((s) => [s.use?.process.user ?? null, s.bytes, s.start, s.share])).toEqual([
      ["anna", 20, 0, 0.2],
      ["ben", 10, 0.2, 0.1],
      [null, 30, 0.30000000000000004, 0.3],
      [null, 20, 0.6000000000000001, 0.2],
    ]);
    expect(segments.at(-1)?.use).toBeNull();
  });

  it("ends where the bar ends, whatever processes claim", () => {
    const segments = memorySegments(uses, () => 90, 100, 100);
    expect(segments.reduce((sum, s) => sum + s.share, 0)).toBeCloseTo(1);
    expect(segments).toHaveLength(2);
  });

  it("shows the largest of many and the others together", () => {
    const many = Array.from({ length: 100 }, (_, i) => use(i, `user${i}`));
    const segments = memorySegments(many, ({ position }) => position + 1, 6000, 10_000);
    expect(segments).toHaveLength(26);
    expect(segments.slice(0, 24).every((s) => s.bytes > 76 && s.others === 0)).toBe(true);
    expect(segments.slice(24).map((s) => [s.use, s.others, s.bytes])).toEqual([
      [null, 76, (76 * 77) / 2],
      [null, 0, 6000 - (100 * 101) / 2],
    ]);
  });

  it("shows nothing where nothing is known", () => {
    expect(memorySegments(uses, bytesOf, 80, null)).toEqual([]);
    expect(memorySegments([], bytesOf, null, 100)).toEqual([]);
    expect(memorySegments([], bytesOf, 0.1, 100)).toEqual([]);
  });
});
