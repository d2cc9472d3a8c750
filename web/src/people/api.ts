/** What the pages for people ask of the hub. */
import type { components } from "../lib/api";
import type { Account, Role } from "../lib/people";
import { request } from "../lib/request";

type Schemas = components["schemas"];
/** The hub leaves nothing out of what it tells. */
type Told<Name extends keyof Schemas> = Required<Schemas[Name]>;

export type KeptToken = Told<"KeptToken">;
export type Scope = KeptToken["scopes"][number];
export type AuditEntry = Told<"AuditEntry">;
export type AccountChange = Schemas["AccountChange"];
export type DeviceRef = Schemas["DeviceRef"];

const of = (id: string): string => `accounts/${encodeURIComponent(id)}`;

export const own = {
  change: (change: { display_name: string }) => request<Account>("PATCH", "account", { body: change }),
  changePassword: (before: string, next: string) =>
    request("POST", "account/password", { body: { old_password: before, new_password: next } }),
  sessions: () => request<Told<"KeptSession">[]>("GET", "account/sessions"),
  endSession: (id: string) => request("DELETE", `account/sessions/${encodeURIComponent(id)}`),
  endOtherSessions: () => request("DELETE", "account/sessions"),
  tokens: () => request<KeptToken[]>("GET", "account/tokens"),
  addToken: (title: string, scopes: readonly Scope[], days: number) =>
    request<Told<"CreatedToken">>("POST", "account/tokens", { body: { title, scopes, days } }),
  endToken: (id: string) => request("DELETE", `account/tokens/${encodeURIComponent(id)}`),
  feeds: () => request<Told<"FeedView">[]>("GET", "account/feeds"),
  /** Of one's own bookings, or of all bookings of a device. */
  addFeed: (device: DeviceRef | null) =>
    request<Told<"CreatedFeed">>("POST", "account/feeds", {
      body: { kind: device ? "device" : "account", device },
    }),
  endFeed: (id: string) => request("DELETE", `account/feeds/${encodeURIComponent(id)}`),
  erase: (name: string, password: string) => request("POST", "account/erase", { body: { name, password } }),
};

export const accounts = {
  all: () => request<Account[]>("GET", "accounts"),
  add: (account: { name: string; display_name: string; role: Role }) =>
    request<Told<"CreatedAccount">>("POST", "accounts", { body: account }),
  change: (id: string, change: AccountChange) => request<Account>("PATCH", of(id), { body: change }),
  resetPassword: (id: string) => request<Told<"TemporaryPassword">>("POST", `${of(id)}/password`),
  endSessions: (id: string) => request("DELETE", `${of(id)}/sessions`),
  remove: (id: string) => request("DELETE", of(id)),
};

const tell = <Answer>(node: string, action: string, uuid: string): Promise<Answer> =>
  request<Answer>("POST", `nodes/${encodeURIComponent(node)}/${action}-gpu`, { body: { uuid } });

export const gpus = {
  forget: (node: string, uuid: string) => tell(node, "forget", uuid),
  acknowledge: (node: string, uuid: string) => tell<Told<"AcknowledgedFaults">>(node, "acknowledge", uuid),
};

export interface AuditSearch {
  readonly text: string | null;
  readonly since: number | null;
  readonly until: number | null;
  readonly before: number | null;
  readonly limit: number;
}

export const searchAudit = (search: AuditSearch, signal: AbortSignal): Promise<AuditEntry[]> =>
  request<AuditEntry[]>("GET", "audit", { query: { ...search }, signal });

/** How many bookings wait for an admin's word. */
export const pendingBookings = async (): Promise<number> =>
  (await request<unknown[]>("GET", "bookings", { query: { state: "pending", limit: 500 } })).length;
