import { describe, expect, it } from "vitest";
import {
  bookingChanges,
  bookingRequest,
  EMPTY_DRAFT,
  readWanted,
  weeksOf,
  writeAny,
  writeDevices,
} from "./booking-draft";

const read = (text: string): ReturnType<typeof readWanted> =>
  readWanted(text, "Europe/Berlin", 1_700_000_000);

describe("what the address asks for", () => {
  it("names a booking to look at, to change or to copy", () => {
    expect(read("show.12")).toEqual({ to: "show", id: 12 });
    expect(read("edit.7")).toEqual({ to: "edit", id: 7 });
    expect(read("show.x")).toEqual({ to: "new", nodeId: null, draft: {} });
  });

  it("names devices and times, whatever characters ids have", () => {
    const devices = [
      { node_id: "a.b/c,d", uuid: "MIG-GPU-1/2@3" },
      { node_id: "n", uuid: "GPU-1" },
    ];
    const from = Date.parse("2026-11-20T17:00:00Z") / 1000;
    expect(read(writeDevices(devices))).toEqual({ to: "new", nodeId: null, draft: { devices } });
    expect(read(writeDevices(devices, from, from + 3600))).toEqual({
      to: "new",
      nodeId: null,
      draft: { devices, start: "2026-11-20 18:00", end: "2026-11-20 19:00" },
    });
  });

  it("begins now where the time given has come", () => {
    expect(read("gpus.n/GPU-1@1700000030-1700003690")).toMatchObject({
      draft: { start: "now", end: "1h 1m" },
    });
    expect(read("gpus.n/GPU-1@1700000030-1700003700")).toMatchObject({
      draft: { start: "now", end: "2023-11-15 00:15" },
    });
  });

  it("names any so many of a model, a whole node, or what the viewer runs", () => {
    expect(read(writeAny(2, "A100.80G"))).toMatchObject({
      draft: { kind: "any", count: 2, model: "A100.80G" },
    });
    expect(read("any")).toMatchObject({ draft: { kind: "any", count: 1, model: "" } });
    expect(read("any.-5")).toMatchObject({ draft: { count: 1 } });
    expect(read("node.gpu01")).toMatchObject({ to: "new", nodeId: "gpu01" });
    expect(read("running")).toMatchObject({ draft: { kind: "running" } });
  });

  it("is an empty form where it makes no sense", () => {
    for (const text of ["", "nonsense", "gpus.", "gpus.%E0%A4%A/"])
      expect(read(text)).toEqual({ to: "new", nodeId: null, draft: {} });
  });

  it("says so where the address was cut, or stands for what another tab knows", () => {
    for (const text of [
      "kept",
      "kept.abc",
      "gpus.a@b",
      "gpus.n/GPU-1@1700000030-",
      "gpus.n/GPU-1@1700000030-17",
    ])
      expect(read(text)).toEqual({ to: "new", nodeId: null, draft: {}, isLost: true });
  });
});

describe("what is sent", () => {
  it("leaves out what was not asked for", () => {
    const devices = [{ node_id: "n", uuid: "GPU-1" }];
    expect(bookingRequest({ ...EMPTY_DRAFT, devices, title: " run " }, "UTC")).toEqual({
      devices,
      start: "now",
      end: "1d",
      zone: "UTC",
      title: "run",
      comment: "",
    });
    expect(
      bookingRequest(
        { ...EMPTY_DRAFT, kind: "any", count: 4, isOneNode: true, isWeekly: true, weeks: 3, group: "nlp" },
        "UTC",
      ),
    ).toMatchObject({ any: { count: 4, same_node: true }, weekly: { times: 3 }, group: "nlp" });
    expect(bookingRequest({ ...EMPTY_DRAFT, kind: "running", start: "" }, "UTC")).toMatchObject({
      running: true,
      start: "now",
    });
  });

  it("repeats as often as can be, whatever stands in the field while it is typed", () => {
    expect([null, 1, 12, 99, 2.4].map(weeksOf)).toEqual([2, 2, 12, 52, 2]);
    expect(bookingRequest({ ...EMPTY_DRAFT, isWeekly: true, weeks: null }, "UTC")).toMatchObject({
      weekly: { times: 2 },
    });
    expect(bookingRequest({ ...EMPTY_DRAFT, weeks: 12 }, "UTC")).not.toHaveProperty("weekly");
  });

  it("names only what was changed, and what it was changed from", () => {
    const first = { ...EMPTY_DRAFT, start: "2026-11-20 18:00", end: "2026-11-20 19:00", group: "nlp" };
    expect(bookingChanges(first, { ...first, title: "run" }, "UTC", 3)).toEqual({
      title: "run",
      zone: "UTC",
      revision: 3,
    });
    expect(bookingChanges(first, { ...first, group: "" }, "UTC", 3)).toEqual({
      group: null,
      zone: "UTC",
      revision: 3,
    });
  });
});
