/** Which user the viewer is, as they said so in this browser. Nothing is allowed or refused by it. */

const KEY = "gpuherd.me";
const LONGEST_NAME = 64;

class Me {
  #user = $state<string | null>(recall());

  /** `null` where it is not known. */
  get user(): string | null {
    return this.#user;
  }

  set user(user: string | null) {
    this.#user = user?.trim().slice(0, LONGEST_NAME) || null;
    try {
      if (this.#user === null) localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, this.#user);
    } catch {
      // Private windows and full stores refuse; the name then lasts as long as the page.
    }
  }
}

function recall(): string | null {
  try {
    return localStorage.getItem(KEY) || null;
  } catch {
    return null;
  }
}

export const me = new Me();
