/** Who used how much: what the hub tells of it, in the order and the words in which it is shown. */
import type { components } from "./api";
import { compareNames } from "./names";
import type { UsageSorting } from "./usage-place";

type Schemas = components["schemas"];
/** The hub leaves nothing out of what it tells. */
type Told<Name extends keyof Schemas> = Required<Schemas[Name]>;

export type UsageFigures = Told<"UsageFigures">;
export type BookingUsage = Told<"BookingUsage">;
export type MissingPart = Told<"MissingPart">;
export type UsageRow = Omit<Told<"UsageRow">, "figures"> & { figures: UsageFigures };
export type UsageReport = Omit<Told<"UsageReport">, "rows" | "totals"> & {
  rows: readonly UsageRow[];
  totals: UsageFigures;
};
export type UsageOverTime = Told<"UsageOverTime">;
export type TrendRow = Told<"TrendRow">;
export type TrendsView = Told<"TrendsView">;
export type HourMap = Told<"HourMap">;
export type UsageSession = Omit<Told<"UsageSession">, "figures"> & { figures: UsageFigures };
export type UsageSessions = Omit<Told<"UsageSessions">, "sessions"> & { sessions: readonly UsageSession[] };
export type Distribution = Told<"Distribution">;

/** A row with the place it has among all, most GPU-hours first. */
export interface RankedRow extends UsageRow {
  readonly rank: number;
}

export function ranked(rows: readonly UsageRow[]): readonly RankedRow[] {
  return sortRows(rows, "hours", false).map((row, i) => ({ ...row, rank: i + 1 }));
}

const WORTH: Record<Exclude<UsageSorting, "name">, (row: UsageRow) => number | null> = {
  hours: ({ figures }) => figures.gpu_hours,
  efficiency: ({ figures }) => figures.efficiency,
  waste: ({ figures }) => figures.idle_hours,
  energy: ({ figures }) => figures.energy_kwh,
  cost: ({ figures }) => figures.cost,
  booked: ({ bookings }) => bookings && bookings.booked_hours,
  sessions: ({ sessions }) => sessions,
};

/** Most first, names from A on; what is unknown comes last either way round. */
export function sortRows<Row extends UsageRow>(
  rows: readonly Row[],
  sorting: UsageSorting,
  isReversed: boolean,
): readonly Row[] {
  const turn = isReversed ? -1 : 1;
  const byName = (a: Row, b: Row): number =>
    Number(a.key === null) - Number(b.key === null) || compareNames(a.label, b.label);
  if (sorting === "name")
    return [...rows].sort((a, b) =>
      a.key === null || b.key === null ? byName(a, b) : turn * compareNames(a.label, b.label),
    );
  const worth = WORTH[sorting];
  return [...rows].sort((a, b) => {
    const [x, y] = [worth(a), worth(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null) || byName(a, b);
    return turn * (y - x) || byName(a, b);
  });
}

/** Those whose name has every word of the search in it. */
export function filterRows<Row extends UsageRow>(rows: readonly Row[], query: string): readonly Row[] {
  const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return rows;
  return rows.filter(({ key, label }) => {
    const name = `${label} ${key ?? ""}`.toLowerCase();
    return wanted.every((word) => name.includes(word));
  });
}

/** How a number differs from what it was; `null` where there is nothing to compare with. */
export function changeOf(now: number | null, before: number | null | undefined): number | null {
  if (now === null || before === null || before === undefined || before <= 0) return null;
  return now / before - 1;
}

/** Parts of a range of which nothing or not everything is known, neighbours with one reason as one. */
export function joinMissing(parts: readonly MissingPart[]): readonly MissingPart[] {
  const joined: MissingPart[] = [];
  for (const part of [...parts].sort((a, b) => a.start - b.start)) {
    const last = joined.at(-1);
    if (last && last.reason === part.reason && part.start <= last.end + 1)
      joined[joined.length - 1] = { ...last, end: Math.max(last.end, part.end) };
    else joined.push(part);
  }
  return joined;
}

/** Whether something of a stretch is missing. */
export function isMissing(parts: readonly MissingPart[], from: number, to: number): boolean {
  return parts.some(({ start, end }) => start < to && end > from);
}
