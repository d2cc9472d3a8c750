/** In which zone bookings are shown and read: this browser's, or the hub's where they differ. */
import { session } from "./session.svelte";
import { browserZone, isZone } from "./zone";

const KEY = "gpuherd.zone";

class ZoneChoice {
  readonly own = browserZone();
  #isHub = $state(recall());

  /** The hub's zone; `null` where it is not known here, or the same. */
  get hub(): string | null {
    const zone = session.view?.zone ?? "";
    return isZone(zone) && zone !== this.own ? zone : null;
  }

  get current(): string {
    return (this.#isHub ? this.hub : null) ?? this.own;
  }

  set current(zone: string) {
    this.#isHub = zone !== this.own;
    try {
      localStorage.setItem(KEY, this.#isHub ? "hub" : "own");
    } catch {
      // Private windows and full stores refuse; the choice then lasts as long as the page.
    }
  }
}

function recall(): boolean {
  try {
    return localStorage.getItem(KEY) === "hub";
  } catch {
    return false;
  }
}

export const zones = new ZoneChoice();
