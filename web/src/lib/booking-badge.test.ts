import { describe, expect, it } from "vitest";
import { badgesOf, roughly } from "./booking-badge";
import type { DeviceBookingView } from "./types";

const DAY = 86_400;
const NOW = 100 * DAY;
const booking = (
  id: number,
  from: number,
  to: number,
  use: DeviceBookingView["use"] = null,
): DeviceBookingView => ({
  id,
  holder: "anna",
  title: "run",
  starts_at: NOW + from,
  ends_at: NOW + to,
  phase: "current",
  use,
});

describe("badges at a device", () => {
  it("tells the one that runs and how long still, whatever was or comes", () => {
    const badges = badgesOf(
      [booking(1, -3 * DAY, -DAY), booking(2, -DAY, 3 * DAY), booking(3, 3 * DAY, 4 * DAY)],
      NOW,
    );
    expect(badges).toMatchObject([{ id: 2, phase: "current", seconds: 3 * DAY, trouble: null }]);
  });

  it("tells what ended, and what begins within a day", () => {
    const past = booking(1, -3 * DAY, -DAY);
    expect(badgesOf([past, booking(2, 3600, DAY)], NOW)).toMatchObject([
      { id: 1, phase: "past", seconds: DAY },
      { id: 2, phase: "next", seconds: 3600 },
    ]);
    expect(badgesOf([past, booking(2, 2 * DAY, 3 * DAY)], NOW)).toHaveLength(1);
  });

  it("goes by the time and not by what was said when the message came", () => {
    expect(badgesOf([booking(1, -DAY, 0)], NOW)[0]?.phase).toBe("past");
  });

  it("marks use by others at once, and no use after a while", () => {
    const trouble = (from: number, use: DeviceBookingView["use"]): string | null | undefined =>
      badgesOf([booking(1, from, DAY, use)], NOW)[0]?.trouble;
    expect([trouble(-60, "others"), trouble(-60, "shared")]).toEqual(["violation", "violation"]);
    expect([trouble(-60, "unused"), trouble(-DAY, "unused")]).toEqual([null, "unused"]);
    expect([trouble(-DAY, "holder"), trouble(-DAY, "unknown"), trouble(-DAY, null)]).toEqual([
      null,
      null,
      null,
    ]);
  });
});

describe("rough times", () => {
  it("has one unit", () => {
    expect([0, 30 * 60, 89 * 60, 5 * 3600, 35 * 3600, 3.2 * DAY].map(roughly)).toEqual([
      "1 min",
      "30 min",
      "89 min",
      "5 h",
      "35 h",
      "3 d",
    ]);
  });
});
