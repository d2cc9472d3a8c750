import { describe, expect, it } from "vitest";
import { lanesOf, merged, readStays, usersOn, usersWithin } from "./history-sessions";
import type { UsageSession, UsageSessions } from "./history-types";

const session = (
  uuid: string,
  user: string | null,
  started_at: number,
  ended_at: number | null,
): UsageSession => ({ uuid, user, started_at, ended_at, last_seen_at: ended_at ?? 300 }) as UsageSession;
const told = (sessions: UsageSession[], is_complete = true): UsageSessions =>
  ({ sessions, is_complete }) as UsageSessions;

const { byDevice: stays } = readStays(
  told([
    session("a", "bo", 200, null),
    session("a", "ada", 0, 100),
    session("a", null, 50, 150),
    session("b", "ada", 0, 10),
    session("a", "ada", 260, 270),
  ]),
  300,
);

describe("who was there", () => {
  it("is told of each device by start, and goes on until now", () => {
    expect(stays.get("a")?.map(({ user, from, to }) => [user, from, to])).toEqual([
      ["ada", 0, 100],
      [null, 50, 150],
      ["bo", 200, 300],
      ["ada", 260, 270],
    ]);
    expect(stays.get("c")).toBeUndefined();
  });

  it("is looked up by what a point stands for", () => {
    const of = stays.get("a") ?? [];
    expect(usersWithin(of, { from: 0, to: 50 })).toEqual(["ada"]);
    expect(usersWithin(of, { from: 60, to: 70 })).toEqual(["ada", null]);
    expect(usersWithin(of, { from: 160, to: 190 })).toEqual([]);
    expect(usersWithin(of, { from: 100, to: 110 })).toEqual([null]);
    expect(usersWithin(of, { from: 265, to: 400 })).toEqual(["bo", "ada"]);
    expect(usersWithin([{ user: "x", from: 5, to: 5 }], { from: 0, to: 10 })).toEqual(["x"]);
  });

  it("is not known of the time from which not all stays are told", () => {
    const some = [session("a", "bo", 200, null), session("b", "ada", 0, 150), session("a", "ada", 50, 120)];
    const part = readStays(told(some, false), 300);
    expect(usersOn(part, "a", { from: 160, to: 190 })).toEqual([]);
    expect(usersOn(part, "a", { from: 60, to: 70 })).toEqual(["ada"]);
    expect(usersOn(part, "a", { from: 10, to: 40 })).toBeNull();
    expect(usersOn(part, "c", { from: 110, to: 130 })).toBeNull();
    const all = readStays(told(some), 300);
    expect(usersOn(all, "a", { from: 10, to: 40 })).toEqual([]);
  });

  it("has a lane for each user, longest first, cut to what is seen", () => {
    const lanes = lanesOf(stays.get("a") ?? [], { from: 20, to: 280 }, 0);
    expect(lanes.map(({ user, seconds }) => [user, seconds])).toEqual([
      [null, 100],
      ["ada", 90],
      ["bo", 80],
    ]);
    expect(lanes[1]?.spans).toEqual([
      { from: 20, to: 100 },
      { from: 260, to: 270 },
    ]);
  });

  it("draws what cannot be told apart as one, and counts it exactly", () => {
    const lanes = lanesOf(stays.get("a") ?? [], { from: 0, to: 300 }, 200);
    const ada = lanes.find(({ user }) => user === "ada");
    expect(ada?.spans).toEqual([{ from: 0, to: 270 }]);
    expect(ada?.seconds).toBe(110);
    expect(merged([], 5)).toEqual([]);
  });
});
