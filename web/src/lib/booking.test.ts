import { describe, expect, it } from "vitest";
import { type BookedDevice, devicesText, readTimeline, type TimelineView } from "./booking";
import { deviceKey } from "./timeline";

const device = (node: string, index: number | null, given: Partial<BookedDevice> = {}): BookedDevice => ({
  node_id: `id-${node}`,
  uuid: `GPU-${node}-${index}`,
  node_name: node,
  index,
  parent_index: null,
  short_name: "A100",
  is_gone: false,
  ...given,
});

describe("devices in words", () => {
  it("says runs of numbers as such, by node", () => {
    const devices = [0, 1, 2, 3, 6, 8, 9].map((index) => device("n1", index));
    expect(devicesText(devices)).toBe("n1/0-3,6,8,9");
    expect(devicesText([device("n2", 10), device("n2", 9), device("n1", 0)])).toBe("n2/9,10 n1/0");
  });

  it("names slices by their GPU and what is gone by its UUID", () => {
    expect(devicesText([device("n1", 1, { parent_index: 3 }), device("n1", null, { uuid: "GPU-x" })])).toBe(
      "n1/3.1,GPU-x",
    );
  });
});

describe("the timeline's answer", () => {
  const booking: TimelineView["bookings"][number] = {
    id: 1,
    title: "run",
    holder: "anna",
    starts_at: 10,
    ends_at: 20,
    state: "pending",
    is_own: true,
    may_edit: true,
    group: null,
    series_id: null,
    revision: 1,
    devices: [0, 2, 9],
  };
  const answer: TimelineView = {
    time: 0,
    since: 0,
    until: 100,
    is_current: true,
    devices: [
      { ...device("n1", 0), is_quiet: false },
      { ...device("n1", 1), is_quiet: true },
      { ...device("n1", 2, { is_gone: true }), is_quiet: false },
    ],
    bookings: [booking],
  };

  it("gives each device its bars, names what is gone and what is quiet, and stands positions that are none", () => {
    const { bars, quiet, gone } = readTimeline(answer);
    const bar = { id: 1, title: "run", holder: "anna", from: 10, to: 20, isOwn: true, isPending: true };
    expect(bars.get(deviceKey("id-n1", "GPU-n1-0"))).toEqual([bar]);
    expect([...quiet]).toEqual([deviceKey("id-n1", "GPU-n1-1")]);
    expect(gone.map(({ device: { uuid } }) => uuid)).toEqual(["GPU-n1-2"]);
  });
});
