import { describe, expect, it } from "vitest";
import { change, gpu, node } from "./changes.fixture";
import { select } from "./filter";
import { Herd } from "./herd";
import { parseQuery } from "./search";
import {
  type Bar,
  type Cell,
  choose,
  chosenDevices,
  daysOf,
  deviceKey,
  hourLines,
  inTheWay,
  isWithin,
  placeOf,
  rowsOf,
  snap,
  spanOf,
  stepOf,
  turn,
} from "./timeline";

const BERLIN = "Europe/Berlin";
const HOUR = 3600;
const at = (iso: string): number => Date.parse(iso) / 1000;

describe("what is seen", () => {
  it("is whole local days, and goes on where it ended", () => {
    const week = spanOf(at("2026-11-16T12:00:00Z"), "week", BERLIN);
    expect(week).toEqual({ from: at("2026-11-15T23:00:00Z"), to: at("2026-11-22T23:00:00Z") });
    expect(turn(week, "week", BERLIN, 1)).toBe(week.to);
    expect(turn(week, "week", BERLIN, -1)).toBe(at("2026-11-08T23:00:00Z"));
  });

  it("has a day of 25 hours in autumn and one of 23 in spring, each drawn as long as it is", () => {
    const autumn = daysOf(spanOf(at("2026-10-24T12:00:00Z"), "week", BERLIN), BERLIN);
    expect(autumn.map(({ from, to }) => (to - from) / HOUR)).toEqual([24, 25, 24, 24, 24, 24, 24]);
    expect(autumn.map(({ label }) => label).slice(0, 2)).toEqual(["Sat 24 Oct", "Sun 25 Oct"]);
    expect(autumn.map(({ isWeekend }) => isWeekend)).toEqual([true, true, false, false, false, false, false]);
    const spring = daysOf(spanOf(at("2026-03-29T12:00:00Z"), "day", BERLIN), BERLIN);
    expect(spring.map(({ from, to }) => (to - from) / HOUR)).toEqual([23]);
  });

  it("goes through days that begin at one as through all others", () => {
    const CAIRO = "Africa/Cairo";
    const days = daysOf(spanOf(at("2026-04-24T12:00:00Z"), "week", CAIRO), CAIRO);
    expect(days.map(({ from, to }) => (to - from) / HOUR)).toEqual([23, 24, 24, 24, 24, 24, 24]);
    expect(new Set(days.map(({ label }) => label)).size).toBe(7);
    const [first] = days;
    if (!first) throw new Error("a week has days");
    expect(turn(first, "day", CAIRO, 1)).toBe(days[1]?.from);
    expect(turn(first, "day", CAIRO, -1)).toBe(first.from - 24 * HOUR);
  });

  it("names the hour that comes twice, and leaves out the one that does not come", () => {
    const lines = (iso: string): string[] =>
      hourLines(daysOf(spanOf(at(iso), "day", BERLIN), BERLIN), BERLIN, 50).map(({ label }) => label);
    expect(lines("2026-10-25T12:00:00Z").slice(0, 4)).toEqual(["01:00", "02:00", "02:00 CET", "03:00"]);
    expect(lines("2026-03-29T12:00:00Z").slice(0, 3)).toEqual(["01:00", "03:00", "04:00"]);
    expect(lines("2026-11-16T12:00:00Z")).toHaveLength(23);
  });

  it("has as many words as there is room for", () => {
    const days = daysOf(spanOf(at("2026-11-16T12:00:00Z"), "day", BERLIN), BERLIN);
    expect(hourLines(days, BERLIN, 12).map(({ label }) => label)[0]).toBe("03:00");
    expect(hourLines(days, BERLIN, 1)).toEqual([]);
  });
});

describe("what is selected", () => {
  const noon = at("2026-11-16T12:00:00Z");
  const herd = new Herd();
  herd.apply(change({ nodes: [node(0, { devices: [0, 1, 2, 3, 4].map((i) => gpu(i, i)) })] }));
  const rows = rowsOf(select(herd, 0, parseQuery(""), []), () => false);
  const cell = (row: number, moment: number): Cell => ({ key: rows[row]?.key ?? "", at: moment });

  it("is as fine as a pointer can aim", () => {
    expect([60, 12, 1.2].map(stepOf)).toEqual([HOUR / 4, HOUR, 6 * HOUR]);
  });

  it("snaps to what local clocks show", () => {
    expect(snap(noon + 1234, HOUR / 4, BERLIN)).toBe(noon + 900);
    expect(snap(at("2026-11-16T12:20:00Z"), HOUR, "Asia/Kathmandu")).toBe(at("2026-11-16T12:15:00Z"));
    expect(snap(noon, 6 * HOUR, BERLIN)).toBe(at("2026-11-16T11:00:00Z"));
  });

  it("is in whole steps, whichever corner came first, and begins no earlier than now", () => {
    const chosen = choose(cell(5, noon + 5 * HOUR), cell(2, noon + 2 * HOUR), rows, HOUR, BERLIN, noon);
    expect(chosen).toEqual({ first: 2, last: 5, from: noon + 2 * HOUR, to: noon + 6 * HOUR });
    const now = noon + 100;
    expect(choose(cell(0, noon - HOUR), cell(0, noon), rows, HOUR, BERLIN, now)).toMatchObject({
      from: now,
      to: noon + HOUR,
    });
    expect(choose(cell(0, noon - 3 * HOUR), cell(0, noon - 2 * HOUR), rows, HOUR, BERLIN, now)).toBeNull();
  });

  it("stays with its GPUs when lines come and go, and ends with them", () => {
    const corners = [cell(3, noon), cell(4, noon)] as const;
    const named = (of: typeof rows): string[] => {
      const chosen = choose(...corners, of, HOUR, BERLIN, 0);
      return chosen ? chosenDevices(of, chosen).map(({ device }) => device.facts.uuid) : [];
    };
    expect(named(rows)).toEqual(["GPU-2", "GPU-3"]);
    expect(named(rows.slice(2))).toEqual(["GPU-2", "GPU-3"]);
    expect(named(rows.filter((_, i) => i !== 3))).toEqual([]);
  });

  it("keeps to six-hour marks over a night on which clocks are changed", () => {
    const evening = at("2026-10-24T17:00:00Z");
    const chosen = choose(cell(0, evening), cell(0, at("2026-10-25T01:00:00Z")), rows, 6 * HOUR, BERLIN, 0);
    expect(chosen).toMatchObject({ from: at("2026-10-24T16:00:00Z"), to: at("2026-10-25T05:00:00Z") });
  });
});

describe("lines and what is in the way", () => {
  const herd = new Herd();
  herd.apply(
    change({
      nodes: [
        node(0, {
          devices: [
            gpu(0, 0, { is_partitioned: true }),
            gpu(1, 0, { kind: "slice", parent_uuid: "GPU-0" }),
            gpu(2, 1),
            gpu(3, 2),
          ],
        }),
        node(1, { devices: [gpu(4)] }),
        node(2),
      ],
    }),
  );
  const all = select(herd, 0, parseQuery(""), []);
  const uuids = (found: readonly { device: { facts: { uuid: string } } }[]): string[] =>
    found.map(({ device }) => device.facts.uuid);

  it("has a line for each node that has something to book, and one for each device unless folded", () => {
    const rows = rowsOf(all, (id) => id === "id1");
    expect(rows.map(({ device }) => device?.facts.uuid ?? null)).toEqual([
      null,
      "GPU-1",
      "GPU-2",
      "GPU-3",
      null,
    ]);
  });

  it("means a node by its line alone, and only devices where some are chosen", () => {
    const rows = rowsOf(all, (id) => id === "id1");
    const span = { from: 0, to: 1 };
    expect(uuids(chosenDevices(rows, { ...span, first: 0, last: 0 }))).toEqual(["GPU-1", "GPU-2", "GPU-3"]);
    expect(uuids(chosenDevices(rows, { ...span, first: 0, last: 1 }))).toEqual(["GPU-1"]);
    expect(uuids(chosenDevices(rows, { ...span, first: 2, last: 4 }))).toEqual(["GPU-2", "GPU-3", "GPU-4"]);
  });

  it("tells each booking in the way once; one that ends where another begins is not", () => {
    const bar = (id: number, from: number, to: number): Bar => ({
      id,
      from,
      to,
      holder: "anna",
      title: "",
      isOwn: false,
      isPending: false,
    });
    const [two, three] = [deviceKey("id0", "GPU-2"), deviceKey("id0", "GPU-3")];
    const bars = new Map([
      [two, [bar(1, 0, 10), bar(2, 20, 30)]],
      [three, [bar(2, 20, 30), bar(3, 15, 18)]],
    ]);
    expect(inTheWay([two, three], bars, { from: 10, to: 25 }).map(({ id }) => id)).toEqual([3, 2]);
    expect(inTheWay([two], bars, { from: 10, to: 20 })).toEqual([]);
  });

  it("is known only where all of it was told", () => {
    const told = { from: 100, to: 200 };
    expect(isWithin({ from: 100, to: 150 }, told)).toBe(true);
    expect(isWithin({ from: 150, to: 201 }, told)).toBe(false);
    expect(isWithin({ from: 99, to: 150 }, told)).toBe(false);
    expect(isWithin(told, null)).toBe(false);
  });

  it("places bars as shares of what is seen", () => {
    const seen = { from: 100, to: 200 };
    expect(placeOf({ from: 50, to: 150 }, seen)).toEqual({ left: 0, width: 0.5 });
    expect(placeOf({ from: 150, to: 500 }, seen)).toEqual({ left: 0.5, width: 0.5 });
    expect(placeOf({ from: 0, to: 100 }, seen)).toBeNull();
  });
});
