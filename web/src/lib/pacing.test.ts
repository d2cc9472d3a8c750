import { describe, expect, it } from "vitest";
import { change, node } from "./changes.fixture";
import { Herd } from "./herd";
import { Pacing } from "./pacing";

function herdAt(time: number): Herd {
  const herd = new Herd();
  herd.apply(change({ tick: time, time, nodes: [node(0)] }));
  return herd;
}

describe("the pace of the page", () => {
  it("shows the present itself while nobody asks otherwise", () => {
    const herd = herdAt(10);
    const pacing = new Pacing();
    expect(pacing.show({ herd, now: 10 }, true).herd).toBe(herd);
    expect(pacing.isFresh({ herd, now: 10 })).toBe(true);
  });

  it("holds a moment that later messages do not touch, and jumps to now", () => {
    const herd = herdAt(10);
    const pacing = new Pacing();
    pacing.pause({ herd, now: 10.5 });
    herd.apply(change({ tick: 11, time: 11, after_tick: 10, removed: [0] }));
    const held = pacing.show({ herd, now: 60 }, true);
    expect(held.now).toBe(10.5);
    expect(held.herd.time).toBe(10);
    expect(held.herd.nodes).toHaveLength(1);
    expect(pacing.pausedAt).toBe(10.5);
    expect(pacing.isFresh({ herd, now: 10.6 })).toBe(false);
    pacing.resume();
    expect(pacing.show({ herd, now: 61 }, true)).toEqual({ herd, now: 61 });
    expect(pacing.pausedAt).toBeNull();
  });

  it("renews every so often, but never from a stream that is not live", () => {
    const herd = herdAt(10);
    const pacing = new Pacing();
    pacing.setEvery(5);
    expect(pacing.show({ herd, now: 10 }, true).now).toBe(10);
    expect(pacing.show({ herd, now: 14 }, true).now).toBe(10);
    expect(pacing.show({ herd, now: 15 }, true).now).toBe(15);
    expect(pacing.show({ herd, now: 21 }, false).now).toBe(15);
    expect(pacing.isFresh({ herd, now: 22 })).toBe(true);
    expect(pacing.isFresh({ herd, now: 24 })).toBe(false);
    expect(pacing.show({ herd, now: 25 }, true).now).toBe(25);
    pacing.setEvery(null);
    expect(pacing.show({ herd, now: 26 }, true).now).toBe(26);
  });

  it("renews at once when asked, also while it is held", () => {
    const herd = herdAt(10);
    const pacing = new Pacing();
    expect(pacing.renew({ herd, now: 11 })).toBe(false);
    pacing.pause({ herd, now: 11 });
    expect(pacing.renew({ herd, now: 12 })).toBe(true);
    expect(pacing.pausedAt).toBe(12);
    expect(pacing.show({ herd, now: 13 }, true).now).toBe(12);
  });
});
