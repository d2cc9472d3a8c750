import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ciede2000, contrast, difference, VISIONS } from "./colour-difference.fixture";

/** The tokens of a palette that are plain colours. */
function palette(block: string): ReadonlyMap<string, string> {
  return new Map(
    [...block.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6})\b/g)].map(([, name, colour]) => [
      name ?? "",
      colour ?? "",
    ]),
  );
}

const css = readFileSync(new URL("./tokens.css", import.meta.url), "utf8");
const [lightBlock = "", darkBlock = ""] = css.split("@media screen");
const light = palette(lightBlock);
const THEMES = { light, dark: new Map([...light, ...palette(darkBlock)]) };
const SERIES = Array.from({ length: 8 }, (_, i) => `series-${i + 1}`);
/** Stale, offline and unknown share one colour and are told apart by their shapes. */
const STATES = ["free", "busy", "held", "booked", "fault", "offline"].map((state) => `state-${state}`);
const LEAST_CONTRAST = 3;
const LEAST_DIFFERENCE = 15;
/** Of lines that are not neighbours; the legend shows one of them alone. */
const LEAST_DIFFERENCE_OF_ANY = 9;

describe("the measure of colours", () => {
  // From the data that its authors published for those who write it anew.
  it.each([
    [[50, 2.6772, -79.7751], [50, 0, -82.7485], 2.0425],
    [[50, 2.5, 0], [50, 0, -2.5], 4.3065],
    [[50, 2.5, 0], [73, 25, -18], 27.1492],
    [[60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387], 1.2644],
    [[90.9257, -0.5406, -0.9208], [88.6381, -0.8985, -0.7239], 1.5381],
    [[2.0776, 0.0795, -1.135], [0.9033, -0.0636, -0.5514], 0.9082],
  ] as const)("is %j to %j: %d", (a, b, expected) => {
    expect(ciede2000(a, b)).toBeCloseTo(expected, 3);
    expect(ciede2000(b, a)).toBeCloseTo(expected, 3);
  });

  it("knows black on white", () => {
    expect(contrast("#000000", "#ffffff")).toBeCloseTo(21);
    expect(contrast("#777777", "#ffffff")).toBeCloseTo(4.48, 1);
  });
});

describe.each(Object.entries(THEMES))("the %s palette", (_, tokens) => {
  const colour = (name: string): string => {
    const found = tokens.get(name);
    if (found === undefined) throw new Error(`tokens.css has no colour --${name}`);
    return found;
  };

  it.each([...SERIES, ...STATES])("has a --%s that stands out from the background", (name) => {
    expect(contrast(colour(name), colour("background"))).toBeGreaterThanOrEqual(LEAST_CONTRAST);
  });

  it.each(VISIONS)("tells neighbouring lines of a chart apart with %s vision", (vision) => {
    for (let i = 1; i < SERIES.length; i += 1) {
      const [before, after] = [SERIES[i - 1] ?? "", SERIES[i] ?? ""];
      const told = difference(colour(before), colour(after), vision);
      expect(told, `${before} and ${after}`).toBeGreaterThanOrEqual(LEAST_DIFFERENCE);
    }
  });

  it.each(VISIONS)("confuses no two lines of a chart with %s vision", (vision) => {
    for (const one of SERIES)
      for (const other of SERIES)
        if (one < other)
          expect(
            difference(colour(one), colour(other), vision),
            `${one} and ${other}`,
          ).toBeGreaterThanOrEqual(LEAST_DIFFERENCE_OF_ANY);
  });

  it.each(VISIONS)("tells states apart with %s vision", (vision) => {
    for (const one of STATES)
      for (const other of STATES)
        if (one < other)
          expect(
            difference(colour(one), colour(other), vision),
            `${one} and ${other}`,
          ).toBeGreaterThanOrEqual(LEAST_DIFFERENCE);
  });

  it("has a ramp whose ends nobody confuses", () => {
    expect(contrast(colour("ramp-low"), colour("ramp-high"))).toBeGreaterThanOrEqual(7);
    expect(contrast(colour("ramp-high"), colour("background"))).toBeGreaterThanOrEqual(LEAST_CONTRAST);
    for (const vision of VISIONS)
      expect(difference(colour("ramp-low"), colour("ramp-high"), vision)).toBeGreaterThanOrEqual(45);
  });

  it.each(["text", "text-secondary", "text-quiet", "text-old"])("has a --%s that can be read", (name) => {
    for (const ground of ["background", "surface-raised", "surface-hover", "surface-sunken"])
      expect(contrast(colour(name), colour(ground)), ground).toBeGreaterThanOrEqual(4.5);
  });
});
