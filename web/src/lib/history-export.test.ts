import { expect, it } from "vitest";
import { fileName } from "./history-export";

const SPAN = { from: Date.UTC(2026, 10, 16, 10) / 1000, to: Date.UTC(2026, 10, 16, 14) / 1000 };

it("names files after what they show and when", () => {
  expect(fileName(["h100-01", "GPU 3", "Power"], SPAN, "UTC", "png")).toBe(
    "gpuherd-h100-01-gpu-3-power-20261116T1000-20261116T1400.png",
  );
});

it("lets nothing of what nodes are called through to the file system", () => {
  expect(fileName(["../../etc\\passwd\u202e", "=cmd|' /C calc'!A0", ""], SPAN, "UTC", "csv")).toBe(
    "gpuherd-etc-passwd-cmd-c-calc-a0-20261116T1000-20261116T1400.csv",
  );
  expect(fileName(["x".repeat(500)], SPAN, "UTC", "csv").length).toBeLessThan(170);
});
