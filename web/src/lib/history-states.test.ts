import { expect, it } from "vitest";
import { stateShares } from "./history-states";

it("counts states within what is seen, and only what is known", () => {
  const states = [
    { start: 0, end: 100, state: "free" },
    { start: 100, end: 130, state: "busy" },
    { start: 200, end: 260, state: "busy" },
  ];
  expect(stateShares(states, { from: 50, to: 210 })).toEqual([
    { state: "free", share: 50 / 90 },
    { state: "busy", share: 40 / 90 },
  ]);
  expect(stateShares(states, { from: 300, to: 400 })).toEqual([]);
});
