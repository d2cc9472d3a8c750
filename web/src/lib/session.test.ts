import { describe, expect, it, vi } from "vitest";
import type { Account, SessionView } from "./people";
import { HubError, type request } from "./request";
import { Session, type Tabs } from "./session.svelte";

const ANNA: Account = {
  id: "a1",
  name: "anna",
  display_name: "Anna",
  role: "member",
  groups: [],
  source: "local",
  linux_names: ["anna"],
  is_disabled: false,
  created_at: 0,
  last_login_at: null,
};
const NOBODY: SessionView = {
  account: null,
  privacy: null,
  is_set_up: true,
  bookings_enabled: true,
  password: { is_taken_here: true },
  redirect: null,
  has_password: false,
  via: "nobody",
  scopes: [],
  zone: "UTC",
};
const LOGGED_IN: SessionView = { ...NOBODY, account: ANNA, privacy: "member" };

/** A hub that answers what the test says, and another tab. */
function world(first: SessionView): {
  session: Session;
  answer: (next: SessionView | HubError) => void;
  asked: ReturnType<typeof vi.fn>;
  told: unknown[];
  tabs: Tabs;
} {
  let next: SessionView | HubError = first;
  const asked = vi.fn(() => (next instanceof HubError ? Promise.reject(next) : Promise.resolve(next)));
  const told: unknown[] = [];
  const tabs: Tabs = { postMessage: (message) => void told.push(message), onmessage: null };
  const session = new Session(asked as unknown as typeof request, tabs);
  return { session, answer: (given) => (next = given), asked, told, tabs };
}

describe("Session", () => {
  it("knows nothing before the hub has answered", async () => {
    const { session } = world(NOBODY);
    expect([session.view, session.needsLogin, session.hasEnded]).toEqual([null, false, false]);
    await session.refresh();
    expect([session.needsLogin, session.account, session.hasEnded]).toEqual([true, null, false]);
  });

  it("asks once for all who want to know", async () => {
    const { session, asked } = world(NOBODY);
    await Promise.all([session.refresh(), session.refresh()]);
    expect(asked).toHaveBeenCalledOnce();
    await session.refresh();
    expect(asked).toHaveBeenCalledTimes(2);
  });

  it("logs in, and tells the other tabs", async () => {
    const { session, answer, told, asked } = world(NOBODY);
    await session.refresh();
    const before = session.sight;
    answer(LOGGED_IN);
    await session.logIn("anna", "correct horse");
    expect(asked).toHaveBeenLastCalledWith("POST", "session", {
      body: { name: "anna", password: "correct horse" },
    });
    expect([session.account?.name, session.mayBook, session.isAdmin]).toEqual(["anna", true, false]);
    expect(session.sight).not.toBe(before);
    expect(told).toEqual(["changed"]);
  });

  it("stays nobody if the password is wrong", async () => {
    const { session, answer, told } = world(NOBODY);
    await session.refresh();
    answer(new HubError(401, "login_failed", "wrong"));
    await expect(session.logIn("anna", "no")).rejects.toThrow("wrong");
    expect([session.account, session.hasEnded, told]).toEqual([null, false, []]);
  });

  it("notices that a login has ended, and that there is another", async () => {
    const { session, answer } = world(LOGGED_IN);
    await session.refresh();
    answer(NOBODY);
    await session.refresh();
    expect([session.hasEnded, session.account]).toEqual([true, null]);
    // What someone is at work on stays, with what is offered there.
    expect([session.person?.name, session.mayBook]).toEqual(["anna", true]);
    answer(LOGGED_IN);
    await session.refresh();
    expect(session.hasEnded).toBe(false);
  });

  it("does not take an answer of before a login for one of after it", async () => {
    const { session, answer, asked } = world(NOBODY);
    let late: (view: SessionView) => void = () => undefined;
    asked.mockReturnValueOnce(new Promise<SessionView>((resolve) => (late = resolve)));
    const slow = session.refresh();
    answer(LOGGED_IN);
    await session.logIn("anna", "correct horse");
    late(NOBODY);
    await slow;
    expect([session.account?.name, session.hasEnded]).toEqual(["anna", false]);
  });

  it("keeps what it knows while the hub is away", async () => {
    const { session, answer } = world(LOGGED_IN);
    await session.refresh();
    answer(new HubError(0, "unreachable", "away"));
    await session.refresh();
    expect([session.account?.name, session.hasEnded]).toEqual(["anna", false]);
  });

  it("follows the other tabs", async () => {
    const { session, answer, tabs } = world(NOBODY);
    const leave = vi.fn();
    session.start(leave);
    await session.refresh();
    answer(LOGGED_IN);
    tabs.onmessage?.({ data: "changed" } as MessageEvent);
    await session.refresh();
    expect(session.account?.name).toBe("anna");
    tabs.onmessage?.({ data: "left" } as MessageEvent);
    expect(leave).toHaveBeenCalledOnce();
  });

  it.each([
    ["viewer", true, false],
    ["member", true, true],
    ["admin", true, true],
    ["admin", false, false],
  ] as const)("lets a %s book where bookings are on: %s → %s", async (role, isBooking, may) => {
    const { session } = world({ ...LOGGED_IN, account: { ...ANNA, role }, bookings_enabled: isBooking });
    await session.refresh();
    expect(session.mayBook).toBe(may);
  });
});
