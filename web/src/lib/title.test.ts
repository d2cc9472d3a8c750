import { describe, expect, it } from "vitest";
import { change, gpu, node } from "./changes.fixture";
import { Herd } from "./herd";
import { parsePlace } from "./route.svelte";
import { strings } from "./strings";
import { placeName, titleOf } from "./title";

const herd = new Herd();
herd.apply(
  change({
    nodes: [
      node(0, {
        id: "n0",
        name: "gpu01",
        devices: [
          gpu(0, 3, { uuid: "GPU-a", is_partitioned: true }),
          gpu(1, 1, { uuid: "MIG-b", kind: "slice", parent_uuid: "GPU-a" }),
        ],
      }),
    ],
  }),
);
const here = (search: string): string => placeName(herd, parsePlace(search), null);

describe("the title of the tab", () => {
  it.each([
    ["", ""],
    ["?q=free+a100", "free a100"],
    ["?node=n0", "gpu01"],
    ["?node=gone", "gone"],
    ["?gpu=GPU-a", "gpu01/3"],
    ["?gpu=MIG-b", "gpu01/3.1"],
    ["?gpu=gpu01/3.1", "gpu01/3.1"],
    ["?gpu=GPU-gone", "GPU-gone"],
    ["?user=anna", "anna"],
    ["?users", "Users"],
    ["?usage", "Usage"],
    ["?timeline", "Bookings"],
    ["?bookings", "My bookings"],
    ["?wall", "Wall"],
  ])("says where the viewer is: %s", (search, name) => {
    expect(here(search)).toBe(name);
  });

  it("says which page for people is shown instead", () => {
    const place = parsePlace("?node=n0");
    expect(placeName(herd, place, "login")).toBe("Log in");
    expect(placeName(herd, place, "admin")).toBe("Administration");
    expect(placeName(herd, place, "counts")).toBe("");
  });

  it("has no empty parts, and counts slices apart", () => {
    expect(titleOf("", null)).toBe("gpuherd");
    expect(titleOf("gpu01/3", strings.title.live(2, 8))).toBe("gpu01/3 · 2 + 8 slices free · gpuherd");
    expect(titleOf("", strings.title.live(24, 0))).toBe("24 free · gpuherd");
    expect(strings.title.live(0, 1)).toBe("1 slice free");
  });
});

describe("GPUs and slices", () => {
  it("are counted apart", () => {
    expect(strings.devices(1, 0)).toBe("1 GPU");
    expect(strings.devices(0, 0)).toBe("0 GPUs");
    expect(strings.devices(2, 8)).toBe("2 GPUs and 8 slices");
    expect(strings.devices(0, 1)).toBe("1 slice");
  });
});
