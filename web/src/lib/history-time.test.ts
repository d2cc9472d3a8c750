import { describe, expect, it } from "vitest";
import { lengthText, stepText, ticksOf } from "./history-time";
import { DAY, HOUR } from "./zone";

const utc = (text: string): number => Date.parse(`${text}Z`) / 1000;
const labels = (from: string, to: string, zone = "UTC", most = 6): string[] =>
  ticksOf({ from: utc(from), to: utc(to) }, zone, most).map(({ label }) => label);

describe("ticks", () => {
  it("are round local times", () => {
    expect(labels("2026-11-16T10:03", "2026-11-16T11:03")).toEqual([
      "10:10",
      "10:20",
      "10:30",
      "10:40",
      "10:50",
      "11:00",
    ]);
    expect(labels("2026-11-15T12:30", "2026-11-16T12:30")).toEqual(["18:00", "16 Nov", "06:00", "12:00"]);
    expect(labels("2026-11-15T12:30", "2026-11-16T12:30", "Asia/Kolkata")).toEqual([
      "18:00",
      "16 Nov",
      "06:00",
      "12:00",
      "18:00",
    ]);
  });

  it("are days and months for longer ranges, and stay where they are when these move", () => {
    expect(labels("2026-11-09T10:00", "2026-11-16T10:00", "UTC", 8)).toEqual([
      "10 Nov",
      "11 Nov",
      "12 Nov",
      "13 Nov",
      "14 Nov",
      "15 Nov",
      "16 Nov",
    ]);
    const here = labels("2026-10-01T00:00", "2026-10-30T00:00");
    const later = labels("2026-10-02T00:00", "2026-10-31T00:00");
    expect(here.filter((label) => later.includes(label)).length).toBeGreaterThan(2);
    expect(labels("2025-11-16T00:00", "2026-11-16T00:00")).toEqual(["Jan 2026", "Apr", "Jul", "Oct"]);
  });

  it("are where clocks show them on nights on which these are changed", () => {
    expect(labels("2026-10-24T20:00", "2026-10-25T08:00", "Europe/Berlin")).toEqual([
      "22:00",
      "25 Oct",
      "02:00",
      "04:00",
      "06:00",
      "08:00",
    ]);
    expect(labels("2026-03-28T20:00", "2026-03-29T08:00", "Europe/Berlin").length).toBeGreaterThan(2);
  });
});

describe("lengths", () => {
  it.each([
    [5, "5 s"],
    [60, "1 min"],
    [900, "15 min"],
    [2 * HOUR, "2 h"],
    [DAY, "1 day"],
    [7 * DAY, "1 week"],
    [2.5, "2.5 s"],
  ])("%d is %s", (seconds, text) => {
    expect(lengthText(seconds)).toBe(text);
  });
});

describe("what a point stands for", () => {
  const at = utc("2026-11-16T10:00");
  it.each([
    [5, "Mon 16 Nov 10:00:00"],
    [900, "Mon 16 Nov 10:00 – 10:15"],
    [12 * HOUR, "Mon 16 Nov 10:00 – 22:00"],
  ])("with a step of %d is %s", (step, text) => {
    expect(stepText(at, step, "UTC", at)).toBe(text);
  });
  it("of a day is the day", () => {
    expect(stepText(utc("2026-11-16T00:00"), DAY, "UTC", at)).toBe("Mon 16 Nov");
    expect(stepText(utc("2025-11-16T00:00"), 7 * DAY, "UTC", at)).toBe("Sun 16 Nov 2025 – Sat 22 Nov 2025");
  });
});
