/** Which nodes are open. Remembered in this browser; works without when storing is not allowed. */

const KEY = "gpuherd.expansion";
/** A small herd is shown in full, a large one as an overview. */
const OPEN_UP_TO_DEVICES = 32;
const REMEMBER_AT_MOST = 2000;

interface Choice {
  /** What "all" was last set to; `null` follows the size of the herd. */
  readonly all: boolean | null;
  /** Nodes that differ from it. */
  readonly except: readonly string[];
}

export class Expansion {
  #choice = $state.raw<Choice>(recall());

  isOpen(nodeId: string, deviceCount: number): boolean {
    return this.#choice.except.includes(nodeId) !== this.allOpen(deviceCount);
  }

  allOpen(deviceCount: number): boolean {
    return this.#choice.all ?? deviceCount <= OPEN_UP_TO_DEVICES;
  }

  toggle(nodeId: string): void {
    const { all, except } = this.#choice;
    const others = except.filter((id) => id !== nodeId);
    const next = others.length === except.length ? [...except, nodeId] : others;
    this.#remember({ all, except: next.slice(-REMEMBER_AT_MOST) });
  }

  setAll(open: boolean): void {
    this.#remember({ all: open, except: [] });
  }

  #remember(choice: Choice): void {
    this.#choice = choice;
    try {
      localStorage.setItem(KEY, JSON.stringify(choice));
    } catch {
      // Private windows and full stores refuse; the choice then lasts as long as the page.
    }
  }
}

function recall(): Choice {
  const fresh: Choice = { all: null, except: [] };
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "null") as Partial<Choice> | null;
    if (!kept || !Array.isArray(kept.except)) return fresh;
    return {
      all: typeof kept.all === "boolean" ? kept.all : null,
      except: kept.except.filter((id): id is string => typeof id === "string"),
    };
  } catch {
    return fresh;
  }
}
