import { describe, expect, it } from "vitest";
import {
  addDays,
  dayText,
  isZone,
  minuteText,
  momentOf,
  momentText,
  offsetAt,
  readDay,
  readMinute,
  spanText,
  startOfDay,
  wallOf,
} from "./zone";

const BERLIN = "Europe/Berlin";
const at = (iso: string): number => Date.parse(iso) / 1000;
const day = (text: string): number => readDay(text, BERLIN) ?? NaN;

describe("local times", () => {
  it("reads the clock of a zone", () => {
    expect(wallOf(at("2026-11-16T23:30:45Z"), BERLIN)).toEqual({
      year: 2026,
      month: 11,
      day: 17,
      hour: 0,
      minute: 30,
    });
    expect(offsetAt(at("2026-07-01T00:00:30Z"), BERLIN)).toBe(7200);
    expect(offsetAt(at("2026-11-16T00:00:00Z"), "Asia/Kathmandu")).toBe(20_700);
    expect(offsetAt(at("2026-11-16T00:00:00Z"), "America/New_York")).toBe(-18_000);
  });

  it("makes days of 23 and 25 hours when clocks are changed", () => {
    expect(day("2026-03-30") - day("2026-03-29")).toBe(23 * 3600);
    expect(day("2026-10-26") - day("2026-10-25")).toBe(25 * 3600);
    expect(addDays(at("2026-10-24T16:00:00Z"), 1, BERLIN)).toBe(at("2026-10-25T17:00:00Z"));
    expect(startOfDay(at("2026-10-25T12:00:00Z"), BERLIN)).toBe(at("2026-10-24T22:00:00Z"));
  });

  it("takes the first of a time that comes twice, and goes past one that is left out", () => {
    const twice = { year: 2026, month: 10, day: 25, hour: 2, minute: 30 };
    expect(momentOf(twice, BERLIN)).toBe(at("2026-10-25T00:30:00Z"));
    const never = { year: 2026, month: 3, day: 29, hour: 2, minute: 30 };
    expect(momentOf(never, BERLIN)).toBe(at("2026-03-29T01:30:00Z"));
    // Where clocks are changed at midnight the day begins at one.
    expect(momentOf({ year: 2018, month: 11, day: 4, hour: 0, minute: 0 }, "America/Sao_Paulo")).toBe(
      at("2018-11-04T03:00:00Z"),
    );
  });

  it.each([
    ["Africa/Cairo", "2026-04-23T22:00:00Z", "2026-04-24"],
    ["Asia/Beirut", "2026-03-28T22:00:00Z", "2026-03-29"],
    ["America/Santiago", "2026-09-06T04:00:00Z", "2026-09-06"],
    ["America/Havana", "2026-03-08T05:00:00Z", "2026-03-08"],
  ])(
    "begins a day without midnight at its first moment, and the days around it at midnight: %s",
    (zone, iso, name) => {
      const first = at(iso);
      expect(startOfDay(first + 12 * 3600, zone)).toBe(first);
      expect([dayText(first, zone), minuteText(first, zone).slice(-5)]).toEqual([name, "01:00"]);
      expect(startOfDay(first, zone, 1) - first).toBe(23 * 3600);
      expect(startOfDay(first, zone, -1) - first).toBe(-24 * 3600);
      expect(minuteText(startOfDay(first, zone, 7), zone).slice(-5)).toBe("00:00");
    },
  );

  it("writes days and minutes as they stand in addresses and fields", () => {
    expect(dayText(at("2026-11-16T23:30:00Z"), BERLIN)).toBe("2026-11-17");
    expect(minuteText(at("2026-11-16T17:05:00Z"), BERLIN)).toBe("2026-11-16 18:05");
    expect(readMinute("2026-11-16 18:05", BERLIN)).toBe(at("2026-11-16T17:05:00Z"));
    expect(readMinute("3d 4h", BERLIN)).toBeNull();
    expect(readDay("2026-13-40", BERLIN)).toBeNull();
    expect(readDay("soon", BERLIN)).toBeNull();
  });

  it("says what people say, and the zone", () => {
    const now = at("2026-11-16T12:00:00Z");
    expect(momentText(at("2026-11-20T17:00:00Z"), BERLIN, now)).toBe("Fri 20 Nov 18:00");
    expect(momentText(at("2027-01-02T17:00:00Z"), BERLIN, now)).toBe("Sat 2 Jan 2027 18:00");
    expect(spanText(at("2026-11-20T17:00:00Z"), at("2026-11-20T20:00:00Z"), BERLIN, now)).toBe(
      "Fri 20 Nov 18:00 – 21:00 CET",
    );
    expect(spanText(at("2026-10-24T20:00:00Z"), at("2026-10-25T08:00:00Z"), BERLIN, now)).toBe(
      "Sat 24 Oct 22:00 CEST – Sun 25 Oct 09:00 CET",
    );
  });

  it("knows which zones there are", () => {
    expect([BERLIN, "UTC", "", "Mars/Olympus"].map(isZone)).toEqual([true, true, false, false]);
  });
});
