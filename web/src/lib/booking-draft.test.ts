import { describe, expect, it } from "vitest";
import { bookingRequest, EMPTY_DRAFT, readWanted, writeAny, writeDevices } from "./booking-draft";

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
    for (const text of ["", "nonsense", "gpus.", "gpus.%E0%A4%A/", "gpus.a@b"])
      expect(read(text)).toEqual({ to: "new", nodeId: null, draft: {} });
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
        { ...EMPTY_DRAFT, kind: "any", count: 4, isOneNode: true, weeks: 3, group: "nlp" },
        "UTC",
      ),
    ).toMatchObject({ any: { count: 4, same_node: true }, weekly: { times: 3 }, group: "nlp" });
    expect(bookingRequest({ ...EMPTY_DRAFT, kind: "running", start: "" }, "UTC")).toMatchObject({
      running: true,
      start: "now",
    });
  });
});
