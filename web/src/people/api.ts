/** What the pages for people ask of the hub. */
import type { Account, Role } from "../lib/people";
import { request } from "../lib/request";

export type Scope = "read" | "book" | "admin";

export interface LoginRecord {
  readonly id: string;
  readonly created_at: number;
  readonly expires_at: number;
  readonly seen_at: number;
  readonly peer: string;
  readonly agent: string;
  readonly is_current: boolean;
}

export interface TokenRecord {
  readonly id: string;
  readonly title: string;
  readonly scopes: readonly Scope[];
  readonly created_at: number;
  readonly expires_at: number;
  readonly seen_at: number | null;
}

export interface FeedRecord {
  readonly id: string;
  readonly kind: "account" | "device";
  readonly created_at: number;
}

export interface AuditEntry {
  readonly id: number;
  readonly at: number;
  readonly account_id: string | null;
  readonly who: string;
  readonly peer: string | null;
  readonly action: string;
  readonly subject: string;
  readonly detail: string;
}

export interface AccountChange {
  display_name?: string;
  role?: Role;
  groups?: readonly string[];
  linux_names?: readonly string[];
  is_disabled?: boolean;
}

const of = (id: string): string => `accounts/${encodeURIComponent(id)}`;

export const own = {
  change: (change: { display_name: string }) => request<Account>("PATCH", "account", { body: change }),
  changePassword: (before: string, next: string) =>
    request("POST", "account/password", { body: { old_password: before, new_password: next } }),
  sessions: () => request<LoginRecord[]>("GET", "account/sessions"),
  endSession: (id: string) => request("DELETE", `account/sessions/${encodeURIComponent(id)}`),
  endOtherSessions: () => request("DELETE", "account/sessions"),
  tokens: () => request<TokenRecord[]>("GET", "account/tokens"),
  addToken: (title: string, scopes: readonly Scope[], days: number) =>
    request<{ token: string }>("POST", "account/tokens", { body: { title, scopes, days } }),
  endToken: (id: string) => request("DELETE", `account/tokens/${encodeURIComponent(id)}`),
  feeds: () => request<FeedRecord[]>("GET", "account/feeds"),
  addFeed: () => request<{ url: string }>("POST", "account/feeds", { body: { kind: "account" } }),
  endFeed: (id: string) => request("DELETE", `account/feeds/${encodeURIComponent(id)}`),
  erase: (name: string, password: string) => request("POST", "account/erase", { body: { name, password } }),
};

export const accounts = {
  all: () => request<Account[]>("GET", "accounts"),
  add: (account: { name: string; display_name: string; role: Role }) =>
    request<{ account: Account; password: string | null }>("POST", "accounts", { body: account }),
  change: (id: string, change: AccountChange) => request<Account>("PATCH", of(id), { body: change }),
  resetPassword: (id: string) => request<{ password: string }>("POST", `${of(id)}/password`),
  endSessions: (id: string) => request("DELETE", `${of(id)}/sessions`),
  remove: (id: string) => request("DELETE", of(id)),
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
