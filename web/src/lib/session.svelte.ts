/** Who looks at this page, and what they may see and do: as the hub says, which decides. */
import { request, whenLoginIsNeeded } from "./request";
import type { Account, SessionView } from "./people";

/** How the tabs of one browser, which share a login, tell each other of a change. */
export interface Tabs {
  postMessage(message: "changed" | "left"): void;
  onmessage: ((event: MessageEvent) => void) | null;
}

export class Session {
  readonly #ask: typeof request;
  readonly #tabs: Tabs | null;
  #view = $state.raw<SessionView | null>(null);
  #hasEnded = $state(false);
  #person = $state.raw<Account | null>(null);
  #asking = $state.raw<Promise<void> | null>(null);

  constructor(ask: typeof request = request, tabs: Tabs | null = null) {
    this.#ask = ask;
    this.#tabs = tabs;
  }

  /** `null` until the hub has answered. */
  get view(): SessionView | null {
    return this.#view;
  }

  /** Whether the hub is being asked right now. */
  get isAsking(): boolean {
    return this.#asking !== null;
  }

  /** Who is logged in. */
  get account(): Account | null {
    return this.#view?.account ?? null;
  }

  /** Who is logged in or, where that has ended, was: what someone is at work on stays until they log in again. */
  get person(): Account | null {
    return this.#person;
  }

  /** Whether nothing can be seen without a login. */
  get needsLogin(): boolean {
    return this.#view !== null && this.#view.privacy === null;
  }

  /** Whether only totals can be seen without a login. */
  get isCounting(): boolean {
    return this.#view?.privacy === "counts";
  }

  /** Whether to offer what only admins may do. */
  get isAdmin(): boolean {
    return this.#person?.role === "admin";
  }

  /** Whether to offer to write bookings. */
  get mayBook(): boolean {
    return this.#view?.bookings_enabled === true && this.#person !== null && this.#person.role !== "viewer";
  }

  /** Whether someone was logged in when this page was opened, or since, and is not any more. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Changes with what the hub shows. */
  get sight(): string | null {
    return this.#view && `${this.#view.privacy} ${this.account?.id} ${this.account?.role}`;
  }

  /** Ask, and listen to the other tabs and to requests that failed for want of a login. `leave` is another tab's logout. */
  start(leave: () => void): void {
    whenLoginIsNeeded(() => void this.refresh());
    if (this.#tabs)
      this.#tabs.onmessage = ({ data }) => {
        if (data === "left") leave();
        else void this.refresh();
      };
    void this.refresh();
  }

  /** Ask the hub again who this is; if it does not answer, all stays as it was. */
  refresh(): Promise<void> {
    const before = this.#view;
    this.#asking ??= this.#ask<SessionView>("GET", "session")
      // Unless someone has logged in since: the answer is of before.
      .then((view) => this.#view === before && this.#take(view))
      .catch(() => undefined)
      .then(() => void (this.#asking = null));
    return this.#asking;
  }

  /** `HubError` if name or password are wrong, or no password can be taken now. */
  async logIn(name: string, password: string): Promise<void> {
    this.#take(await this.#ask<SessionView>("POST", "session", { body: { name, password } }));
    this.#tabs?.postMessage("changed");
  }

  /** Make the first account. `HubError` if the code is not valid, or name or password will not do. */
  async setUp(first: { code: string; name: string; display_name: string; password: string }): Promise<void> {
    this.#take(await this.#ask<SessionView>("POST", "setup", { body: first }));
    this.#tabs?.postMessage("changed");
  }

  /** The hub forgets this login; what is on the page is then the caller's to clear away. */
  async logOut(): Promise<void> {
    await this.#ask("DELETE", "session");
    this.#tabs?.postMessage("left");
  }

  #take(view: SessionView): void {
    if (view.account) this.#hasEnded = false;
    else if (this.account) this.#hasEnded = true;
    this.#person = view.account ?? this.#person;
    this.#view = view;
  }
}

export const session = new Session(
  request,
  typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("gpuherd.session"),
);
