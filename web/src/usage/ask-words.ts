/** Every word of who holds GPUs: apart, since the page of users has it, too. */
import type { TrendRow } from "../lib/usage";

export const askWords = {
  loading: "Loading …",
  heading: "Who to ask",
  label: "Who holds GPUs now, and held them recently",
  hint: "GPUs held now and on average; arrows show whether it is more or less now. For free GPUs, “booked now” counts those that nobody has booked.",
  user: "User",
  reserved: "Booked now",
  used: "Used now",
  idle: "Idle now",
  mean_2h: "2 h",
  mean_24h: "24 h",
  mean_1w: "1 week",
  trends: { up: "more now", down: "less now", level: "the same now" } satisfies Record<
    TrendRow["trend"],
    string
  >,
  trendTitle: "Average of this time; the arrow tells whether more or less is used now",
  free: "free",
  none: "Nobody has held a GPU lately.",
  more: "All figures",
  count: (count: number): string => `${count} ${count === 1 ? "user" : "users"}`,
  failed: "The averages could not be loaded.",
  earlier: (date: string): string => `Until ${date}, the averages are those of the older page.`,
} as const;
