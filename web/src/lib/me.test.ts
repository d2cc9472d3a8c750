import { beforeEach, describe, expect, it, vi } from "vitest";

const session = vi.hoisted(() => ({ person: null as { linux_names?: string[] } | null }));
vi.mock("./session.svelte", () => ({ session }));
import { me } from "./me.svelte";

describe("who the viewer is", () => {
  beforeEach(() => {
    session.person = null;
    me.user = null;
  });

  it("is known from the login, whatever this browser remembers", () => {
    me.user = "ben";
    session.person = { linux_names: ["anna", "anna-gpu"] };
    expect(me.isLoggedIn).toBe(true);
    expect(me.users).toEqual(["anna", "anna-gpu"]);
    expect([me.has("anna-gpu"), me.has("ben"), me.has(null)]).toEqual([true, false, false]);
  });

  it("is what they said in this browser where nobody is logged in", () => {
    expect([me.isLoggedIn, me.users]).toEqual([false, []]);
    me.user = " ben ";
    expect([me.users, me.has("ben")]).toEqual([["ben"], true]);
  });
});
