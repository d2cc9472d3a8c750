/** Which accounts a search means: those that have every word of it somewhere. */
import type { Account } from "../lib/people";
import { words } from "./words";

export function matches(account: Account, query: string): boolean {
  const told = [
    account.name,
    account.display_name,
    words.roles[account.role],
    account.source,
    account.is_disabled ? words.admin.disabled : "",
    ...account.groups,
    ...account.linux_names,
  ]
    .join(" ")
    .toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => told.includes(word));
}
