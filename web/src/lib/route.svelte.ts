/** Where the viewer is: everything that should survive a reload or be sent to a colleague stands in the address. */
import type { UserSorting } from "./users";

export type Page =
  | "herd"
  | "users"
  | "user"
  | "usage"
  | "node"
  | "gpu"
  | "timeline"
  | "bookings"
  | "setup"
  | "account"
  | "admin";
export type Grouping = "node" | "type" | "user";
export type Sorting = "name" | "free" | "busy" | "memory";

export interface Place {
  readonly page: Page;
  /**
   * The node's id on the node page, the device's UUID on the GPU page, the name on the page of a user, the part of it on
   * the admins' page, scale and first day of the timeline, what of the use is looked at (lib/usage-place.ts).
   */
  readonly id: string | null;
  /** What is being booked or looked at, over the page (lib/booking-draft.ts); `null` is nothing. */
  readonly book: string | null;
  /** Of which time charts tell (lib/history-range.ts), on whatever page; "" is what is usual there. */
  readonly range: string;
  /** With what charts compare, as devices' UUIDs or `previous`, with commas between; "" is nothing. */
  readonly compare: string;
  /** Whether the start page tells how it was, too. */
  readonly isOverTime: boolean;
  /** What is searched for. */
  readonly query: string;
  readonly group: Grouping;
  readonly sort: Sorting;
  /** How the table of users is sorted. */
  readonly userSort: UserSorting;
  readonly isUserSortReversed: boolean;
  /** Whether the viewer wants to log in; then, to go on to the rest of the place. */
  readonly isLogin: boolean;
  /** For a screen on the wall. */
  readonly isWall: boolean;
  /** Seconds between refreshes, where someone asked for them; `null` is live. */
  readonly refreshSeconds: number | null;
}

const HOME: Place = {
  page: "herd",
  id: null,
  book: null,
  range: "",
  compare: "",
  isOverTime: false,
  query: "",
  group: "node",
  sort: "name",
  userSort: "memory",
  isUserSortReversed: false,
  isLogin: false,
  isWall: false,
  refreshSeconds: null,
};
const GROUPINGS: readonly Grouping[] = ["node", "type", "user"];
const SORTINGS: readonly Sorting[] = ["name", "free", "busy", "memory"];
const USER_SORTINGS: readonly UserSorting[] = ["user", "devices", "memory", "processes", "fraction", "idle"];
/** Pages that only have a name, which may have something for an id. */
const NAMED_PAGES = ["users", "usage", "timeline", "bookings", "setup", "account", "admin"] as const;
const LONGEST_QUERY = 200;
const LONGEST_RANGE = 40;
const LONGEST_COMPARISON = 1000;
/** The longest text for what is being booked: servers in between refuse longer addresses, or cut them. */
export const LONGEST_BOOK = 4000;
const LONGEST_REFRESH_SECONDS = 3600;

/** Read a place from the part of an address behind the `?`; whatever makes no sense is as if it were not there. */
export function parsePlace(search: string): Place {
  const given = new URLSearchParams(search);
  const node = given.get("node");
  const gpu = given.get("gpu");
  const named = NAMED_PAGES.find((name) => given.has(name));
  const page: Page = gpu ? "gpu" : node ? "node" : given.get("user") ? "user" : (named ?? "herd");
  const users = given.get("users") ?? "";
  const userSort = USER_SORTINGS.find((name) => name === users.replace(/^-/, ""));
  const refresh = Number(given.get("refresh"));
  return {
    page,
    id: (page === "herd" || page === "users" ? null : given.get(page)) || null,
    book: readBook(given.get("book")),
    range: (given.get("range") ?? "").slice(0, LONGEST_RANGE),
    compare: (given.get("compare") ?? "").slice(0, LONGEST_COMPARISON),
    isOverTime: given.has("over-time"),
    query: (given.get("q") ?? "").slice(0, LONGEST_QUERY),
    group: GROUPINGS.find((name) => name === given.get("group")) ?? HOME.group,
    sort: SORTINGS.find((name) => name === given.get("sort")) ?? HOME.sort,
    userSort: userSort ?? HOME.userSort,
    isUserSortReversed: userSort !== undefined && users.startsWith("-"),
    isLogin: given.has("login"),
    isWall: given.has("wall"),
    refreshSeconds:
      given.has("refresh") && refresh >= 1 && refresh <= LONGEST_REFRESH_SECONDS ? refresh : null,
  };
}

/** Whole or not at all: a part of it would be a booking of other GPUs. */
const readBook = (text: string | null): string | null =>
  text !== null && text.length > LONGEST_BOOK ? "kept" : text;

/** Write a place as the part of an address from the `?` on; what is as usual is left out. */
export function formatPlace(place: Place): string {
  const given = new URLSearchParams();
  if (place.isLogin) given.set("login", "");
  if (place.page === "users") given.set("users", formatUserSort(place));
  else if (place.page !== "herd") given.set(place.page, place.id ?? "");
  if (place.book !== null) given.set("book", place.book);
  if (place.range) given.set("range", place.range);
  if (place.compare && place.page === "gpu") given.set("compare", place.compare);
  if (place.isOverTime && place.page === "herd") given.set("over-time", "");
  if (place.query) given.set("q", place.query);
  if (place.group !== HOME.group) given.set("group", place.group);
  if (place.sort !== HOME.sort) given.set("sort", place.sort);
  if (place.isWall) given.set("wall", "");
  if (place.refreshSeconds !== null) given.set("refresh", String(place.refreshSeconds));
  const text = given.toString().replace(/=(?=&|$)/g, "");
  return text ? `?${text}` : "";
}

/** Such as `idle`, or `-idle` for the other way round; nothing for what is usual. */
function formatUserSort({ userSort, isUserSortReversed }: Place): string {
  if (isUserSortReversed) return `-${userSort}`;
  return userSort === HOME.userSort ? "" : userSort;
}

export class Route {
  #place = $state.raw<Place>(parsePlace(location.search));
  #code = $state.raw<string | null>(null);

  constructor() {
    this.#takeCode();
  }

  get place(): Place {
    return this.#place;
  }

  /** The secret of the link that sets the hub up. */
  get code(): string | null {
    return this.#code;
  }

  /**
   * The address of a place like this one, with some things changed: for links. With the path, because `?q` alone would
   * lead from `/gpus` to the base `/gpus/`, from where a proxy may lead back without the query.
   */
  href(changes: Partial<Place>): string {
    return location.pathname + formatPlace(this.#next(changes));
  }

  /** Go to another place. Typing in a field replaces the entry in the history, a link adds one. */
  go(changes: Partial<Place>, { replace = false } = {}): void {
    this.#place = this.#next(changes);
    const address = location.pathname + formatPlace(this.#place) + location.hash;
    if (replace) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
  }

  /** Follow the browser's back and forward buttons, and plain clicks on our own links; gives what ends that. */
  start(): () => void {
    const moved = (): void => {
      this.#place = parsePlace(location.search);
      this.#takeCode();
    };
    const clicked = (event: MouseEvent): void => {
      if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey)
        return;
      const link = (event.target as Element | null)?.closest<HTMLAnchorElement>("a[data-place]");
      if (!link) return;
      event.preventDefault();
      history.pushState(null, "", link.href);
      moved();
      window.scrollTo(0, 0);
    };
    window.addEventListener("popstate", moved);
    document.addEventListener("click", clicked);
    return () => {
      window.removeEventListener("popstate", moved);
      document.removeEventListener("click", clicked);
    };
  }

  /** Whoever goes to another page has thought better of logging in. */
  #next(changes: Partial<Place>): Place {
    return { ...this.#place, ...(changes.page && { isLogin: false }), ...changes };
  }

  /** At once, so that neither the history nor a copied address keeps it. */
  #takeCode(): void {
    if (this.#place.page !== "setup" || location.hash.length < 2) return;
    this.#code = location.hash.slice(1);
    history.replaceState(null, "", location.pathname + location.search);
  }
}
