import { describe, expect, it } from "vitest";
import { formatPlace, parsePlace } from "./route.svelte";

describe("a place in the address", () => {
  it.each([
    "",
    "?users",
    "?users=idle",
    "?users=-memory",
    "?node=gpu01",
    "?gpu=GPU-1",
    "?q=a100+free&group=type&sort=free",
    "?q=user%3Aanna&wall",
    "?refresh=5",
    "?timeline",
    "?timeline=week.2026-11-16&q=a100",
    "?bookings",
    "?usage",
    "?usage=group.90d&q=vision",
    "?gpu=GPU-1&book=any.2",
    "?book",
    "?account",
    "?admin=audit&q=login",
    "?login&node=gpu01",
    "?login",
    "?user=ada&range=7d",
    "?gpu=GPU-1&range=1763000000-1763086400&compare=previous%2CGPU-2",
    "?over-time",
  ])("survives %s", (search) => {
    expect(formatPlace(parsePlace(search))).toBe(search);
  });

  it("ignores what makes no sense", () => {
    expect(formatPlace(parsePlace("?group=nonsense&sort=&refresh=-1&foo=1"))).toBe("");
    expect(formatPlace(parsePlace("?users=-nonsense"))).toBe("?users");
    expect(parsePlace("?herd=x").id).toBeNull();
    expect(parsePlace("?refresh=0").refreshSeconds).toBeNull();
    expect(parsePlace("?refresh=abc").refreshSeconds).toBeNull();
    expect(parsePlace(`?q=${"x".repeat(999)}`).query).toHaveLength(200);
  });

  it("takes what is booked whole or not at all", () => {
    const whole = `gpus.${"n/GPU-1,".repeat(499)}n/G`;
    expect(parsePlace(`?book=${whole}`).book).toBe(whole);
    expect(parsePlace(`?book=${whole},n/GPU-2`).book).toBe("kept");
  });
});
