import { beforeEach, describe, expect, it, vi } from "vitest";
import { EMPTY_DRAFT, readWanted, writeDevices } from "./booking-draft";
// Compiled before any test has to wait for it.
import "./kept-draft";

class Store {
  readonly #items = new Map<string, string>();
  getItem = (key: string): string | null => this.#items.get(key) ?? null;
  setItem = (key: string, text: string): unknown => this.#items.set(key, text);
  removeItem = (key: string): unknown => this.#items.delete(key);
}

/** As after a reload: what the tab has stored is there, what the page had in mind is not. */
async function reload(): Promise<typeof import("./kept-draft")> {
  vi.resetModules();
  return import("./kept-draft");
}

beforeEach(() => {
  vi.stubGlobal("sessionStorage", new Store());
  vi.stubGlobal("location", { search: "" });
});

describe("a draft that is kept", () => {
  const first = { ...EMPTY_DRAFT, title: "as it was" };
  const kept = { draft: { ...first, title: "mine" }, first, revision: 3, zone: "Asia/Tokyo" };

  it("comes back with what it began with, the revision and the zone of its times", async () => {
    (await reload()).keepDraft("edit.12", kept);
    const after = await reload();
    expect(after.keptDraft("edit.12")).toEqual(kept);
    expect(after.keptDraft("edit.13")).toBeNull();
    after.keepDraft("edit.12", null);
    expect(after.keptDraft("edit.12")).toBeNull();
  });

  it("is none where that is missing", async () => {
    const { keptDraft } = await reload();
    for (const stored of [
      { of: "any", draft: kept.draft },
      { ...kept, of: "any", zone: "Mars/Olympus" },
      "x",
    ]) {
      sessionStorage.setItem("gpuherd.draft", JSON.stringify(stored));
      expect(keptDraft("any")).toBeNull();
    }
    sessionStorage.setItem("gpuherd.draft", "{");
    expect(keptDraft("any")).toBeNull();
  });
});

describe("a choice in the address", () => {
  const devices = (count: number): { node_id: string; uuid: string }[] =>
    Array.from({ length: count }, (_, i) => ({
      node_id: `node-${i >> 3}`,
      uuid: `GPU-${String(i).padStart(36, "0")}`,
    }));

  it("is written out as long as it is short", async () => {
    const { readChoice, writeChoice } = await reload();
    const text = writeChoice(devices(50), 10, 20);
    expect(text).toBe(writeDevices(devices(50), 10, 20));
    expect(readChoice(text)).toBe(text);
  });

  it("of hundreds of GPUs is kept whole over a reload", async () => {
    const before = await reload();
    const [address, other] = [
      before.writeChoice(devices(800), 10, 20),
      before.writeChoice(devices(801), 10, 20),
    ];
    expect(address.length).toBeLessThan(40);
    expect(address).not.toBe(other);
    expect(before.writeChoice(devices(800), 10, 20)).toBe(address);
    const after = await reload();
    expect(readWanted(after.readChoice(address), "UTC", 0)).toMatchObject({
      draft: { devices: devices(800) },
    });
    expect(readWanted(after.readChoice("kept.unknown"), "UTC", 0)).toMatchObject({ isLost: true });
  });

  it("keeps the newest", async () => {
    const { readChoice, writeChoice } = await reload();
    const addresses = Array.from({ length: 30 }, (_, i) => writeChoice(devices(100 + i), 10, 20));
    expect(readChoice(addresses.at(-1) ?? "")).toMatch(/^gpus/);
    expect(readChoice(addresses[0] ?? "")).toBe(addresses[0]);
  });
});
