import { describe, expect, it } from "vitest";
import { HubError } from "../lib/request";
import { Deed } from "./deed.svelte";

describe("Deed", () => {
  it("tells what failed, until it is tried again", async () => {
    const deed = new Deed();
    const refuse = (): Promise<never> =>
      Promise.reject(new HubError(409, "name_taken", "taken", { path: "name" }));
    expect(await deed.run(refuse)).toBe(false);
    expect([deed.code, deed.path, deed.failure?.message, deed.isBusy]).toEqual([
      "name_taken",
      "name",
      "taken",
      false,
    ]);
    const again = deed.run(() => Promise.resolve());
    expect([deed.failure, deed.isBusy]).toEqual([null, true]);
    expect(await again).toBe(true);
    expect(deed.isBusy).toBe(false);
  });

  it("is not done twice at a time", async () => {
    const deed = new Deed();
    let done = 0;
    const work = async (): Promise<void> => {
      await Promise.resolve();
      done += 1;
    };
    expect(await Promise.all([deed.run(work), deed.run(work)])).toEqual([true, false]);
    expect(done).toBe(1);
  });

  it("does not call failed what was given up", async () => {
    const deed = new Deed();
    expect(await deed.run(() => Promise.reject(new DOMException("", "AbortError")))).toBe(false);
    expect([deed.failure, deed.code]).toEqual([null, null]);
  });
});
