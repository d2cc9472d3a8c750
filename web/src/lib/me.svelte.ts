/** Which user the viewer is, as they said so in this browser. Nothing is allowed or refused by it. */

const KEY = "gpuherd.me";

class Me {
  #name = $state(recall());

  /** "" where it is not known. */
  get name(): string {
    return this.#name;
  }

  set name(name: string) {
    this.#name = name.trim().slice(0, 64);
    try {
      if (this.#name) localStorage.setItem(KEY, this.#name);
      else localStorage.removeItem(KEY);
    } catch {
      // Private windows and full stores refuse; the name then lasts as long as the page.
    }
  }
}

function recall(): string {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

export const me = new Me();
