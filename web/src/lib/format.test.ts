import { expect, it } from "vitest";
import { capacity, capacityGib, cores, cpuLevel, duration, gib, percent, share, size, whole } from "./format";
import { throttleWords } from "./throttle";

const GIB = 2 ** 30;

it("shows unknown as a dash and zero as zero", () => {
  for (const format of [whole, percent, gib, size, cores, duration]) expect(format(null)).toBe("–");
  expect([whole(0), percent(0), gib(0), size(0), cores(0), duration(0)]).toEqual([
    "0",
    "0 %",
    "0",
    "0 MiB",
    "0.0",
    "0 s",
  ]);
});

it.each([
  [59.9, "59 s"],
  [60, "1 min"],
  [3599, "59 min"],
  [3600, "1 h"],
  [11_520, "3 h 12 min"],
  [86_400, "1 d"],
  [450_000, "5 d 5 h"],
  [-3, "0 s"],
])("writes %d seconds as %s", (seconds, text) => expect(duration(seconds)).toBe(text));

it.each([
  [512 * 2 ** 20, "512 MiB"],
  [80 * GIB, "80.0 GiB"],
  [1008 * GIB, "1008 GiB"],
  [7000 * GIB, "6.8 TiB"],
])("writes %d bytes as %s", (bytes, text) => expect(size(bytes)).toBe(text));

it.each([
  [512 * 2 ** 20, "512 MiB"],
  [80 * GIB, "80 GiB"],
  [46_068 * 2 ** 20, "45 GiB"],
  [9.5 * GIB, "9.5 GiB"],
  [1008 * GIB, "1008 GiB"],
  [2048 * GIB, "2 TiB"],
  [3584 * GIB, "3.5 TiB"],
])("writes a capacity of %d bytes as %s", (bytes, text) => expect(capacity(bytes)).toBe(text));

it("writes a capacity that is not known as a dash", () => {
  expect([capacity(null), capacityGib(null), capacityGib(80 * GIB)]).toEqual(["–", "–", "80"]);
});

it("has no share without both sides, and never one outside of 0 to 1", () => {
  expect([share(null, 1), share(1, null), share(1, undefined), share(1, 0)]).toEqual([
    null,
    null,
    null,
    null,
  ]);
  expect([share(3, 2), share(-1, 2), share(1, 2)]).toEqual([1, 0, 0.5]);
});

it("tells only the throttling that is trouble", () => {
  expect(throttleWords(1 | 2 | 4 | 256)).toBe("");
  expect(throttleWords(32 | 64)).toBe("thermal, hardware thermal");
  expect(throttleWords(null)).toBe("");
});

it("shows load per CPU where the share of CPUs in use was not measured", () => {
  expect([cpuLevel(0.25, 9, 4), cpuLevel(null, 6.84, 4), cpuLevel(null, 3, null)]).toEqual([
    0.25,
    1.71,
    null,
  ]);
  expect([cpuLevel(null, null, 4), cpuLevel(null, 3, undefined), cpuLevel(null, 3, 0)]).toEqual([
    null,
    null,
    null,
  ]);
});
