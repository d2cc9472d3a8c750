/** Which users of the nodes the viewer is: as the hub says of who is logged in, else as they said so in this browser. */
import { session } from "./session.svelte";

const KEY = "gpuherd.me";
const LONGEST_NAME = 64;

class Me {
  #user = $state<string | null>(recall());

  /** Whether the hub knows it. Nobody is then asked for a name. */
  get isLoggedIn(): boolean {
    return session.person !== null;
  }

  /** Empty where it is not known. */
  get users(): readonly string[] {
    const { person } = session;
    if (person) return person.linux_names ?? [];
    return this.#user === null ? [] : [this.#user];
  }

  has(user: string | null): boolean {
    return user !== null && this.users.includes(user);
  }

  /** What someone without a login calls themselves. Nothing is allowed or refused by it. */
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
