import { describe, expect, it } from "vitest";
import { passwordVerdict } from "./passwords";

describe("passwordVerdict", () => {
  it.each([
    ["", "empty"],
    ["123456789", "short"],
    ["1234567890", "good"],
    ["Administrator", "name"],
    ["aaaaaaaaaaaaaaaaaaaaaaaa", "good"],
    ["four words of a song", "strong"],
  ] as const)("calls %j %s", (password, verdict) => {
    expect(passwordVerdict(password, "administrator ")).toBe(verdict);
  });
});
