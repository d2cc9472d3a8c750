import { describe, expect, it } from "vitest";
import { formatPlace, parsePlace } from "./route.svelte";
import { formatUsagePlace, parseUsagePlace } from "./usage-place";

describe("what of the use is looked at", () => {
  it.each([
    "group",
    "90d",
    "node.last-month.waste",
    "job.2026-10-01_2026-10-14.-efficiency",
    "-hours",
    "year.name",
  ])("survives the address as %s", (id) => {
    expect(formatUsagePlace(parseUsagePlace(id))).toBe(id);
    expect(formatPlace(parsePlace(`?usage=${id}`))).toBe(`?usage=${id}`);
  });

  it("is users and thirty days without a word, and takes no nonsense", () => {
    expect(formatUsagePlace(parseUsagePlace(null))).toBeNull();
    expect(parseUsagePlace("nonsense.2026-99-99_1")).toEqual(parseUsagePlace(null));
    expect(parseUsagePlace("90d.type").by).toBe("type");
  });
});
