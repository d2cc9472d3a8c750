/** The title of the tab: where the viewer is, then what is new there. */
import type { Herd } from "./herd";
import { findDevice } from "./find-device";
import { deviceName } from "./node";
import type { Place } from "./route.svelte";
import { strings } from "./strings";

/** A page for people that stands instead of the herd's. */
export type PeoplePage = "setup" | "login" | "counts" | "account" | "admin" | null;

/** "" on the herd's own page. */
export function placeName(herd: Herd, place: Place, people: PeoplePage): string {
  const { title, shell } = strings;
  if (people !== null) return people === "counts" ? "" : title[people];
  if (place.isWall) return title.wall;
  const id = place.id ?? "";
  switch (place.page) {
    case "herd":
      return place.query;
    case "node":
      return herd.nodes.find((node) => node.id === id)?.name ?? id;
    case "gpu": {
      const found = findDevice(herd, id);
      return found ? deviceName(found.node, found.device) : id;
    }
    case "user":
      return id;
    case "users":
    case "usage":
    case "timeline":
      return shell.pages[place.page];
    default:
      return title[place.page];
  }
}

/** Such as "gpu01/3 · 24 free · gpuherd". */
export const titleOf = (...parts: readonly (string | null)[]): string =>
  [...parts, strings.product].filter(Boolean).join(" · ");
