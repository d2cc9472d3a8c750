import { describe, expect, it } from "vitest";
import { userColour } from "./user-colour";

describe("userColour", () => {
  it("is told from the name alone", () => {
    expect(userColour("anna")).toEqual(userColour("anna"));
    // Pinned: a change would give every user another colour overnight.
    expect([userColour("root"), userColour("anna"), userColour("")]).toMatchInlineSnapshot(`
      [
        {
          "hue": 134,
          "tone": 1,
        },
        {
          "hue": 280,
          "tone": 0,
        },
        {
          "hue": 200,
          "tone": 0,
        },
      ]
    `);
  });

  it("spreads names that count up over many colours", () => {
    const names = Array.from({ length: 64 }, (_, i) => `user${String(i).padStart(2, "0")}`);
    const counts = new Map<string, number>();
    for (const name of names) {
      const { hue, tone } = userColour(name);
      counts.set(`${hue}/${tone}`, (counts.get(`${hue}/${tone}`) ?? 0) + 1);
    }
    expect(counts.size).toBeGreaterThanOrEqual(14);
    expect(Math.max(...counts.values())).toBeLessThanOrEqual(9);
  });
});
