/** What of the use is looked at, as it stands in the address: `?usage=group.90d.-waste`. */
import { isRange } from "./usage-range";

export const USAGE_KEYS = ["user", "group", "node", "type", "job"] as const;
export type UsageKey = (typeof USAGE_KEYS)[number];
export const USAGE_SORTINGS = [
  "name",
  "hours",
  "efficiency",
  "waste",
  "energy",
  "cost",
  "booked",
  "sessions",
] as const;
export type UsageSorting = (typeof USAGE_SORTINGS)[number];

export interface UsagePlace {
  readonly by: UsageKey;
  readonly range: string;
  readonly sorting: UsageSorting;
  readonly isReversed: boolean;
}

const USUAL: UsagePlace = { by: "user", range: "30d", sorting: "hours", isReversed: false };

/** Each part is known by what it says, so that none has to be there; what makes no sense is left out. */
export function parseUsagePlace(id: string | null): UsagePlace {
  let place = USUAL;
  for (const part of (id ?? "").split(".")) {
    const by = USAGE_KEYS.find((name) => name === part);
    const sorting = USAGE_SORTINGS.find((name) => name === part.replace(/^-/, ""));
    if (by) place = { ...place, by };
    else if (sorting) place = { ...place, sorting, isReversed: part.startsWith("-") };
    else if (isRange(part)) place = { ...place, range: part };
  }
  return place;
}

/** For the address; `null` where all is as usual. */
export function formatUsagePlace({ by, range, sorting, isReversed }: UsagePlace): string | null {
  const parts = [
    by === USUAL.by ? "" : by,
    range === USUAL.range ? "" : range,
    sorting === USUAL.sorting && !isReversed ? "" : `${isReversed ? "-" : ""}${sorting}`,
  ];
  return parts.filter(Boolean).join(".") || null;
}
