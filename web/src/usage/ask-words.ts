/** Who to ask for a GPU; apart, since the users page has it, too. */
import type { TrendRow } from "../lib/usage";

export const askWords = {
  loading: "Loading …",
  heading: "Who to ask",
  label: "Who uses GPUs now and used them recently",
  hint: "GPUs in use now, and on average. Arrows show whether use is rising or falling. In the row of free GPUs, “booked now” counts those that no one has booked.",
  user: "User",
  reserved: "Booked now",
  used: "Used now",
  idle: "Held idle now",
  mean_2h: "2 h",
  mean_24h: "24 h",
  mean_1w: "1 week",
  trends: { up: "more now", down: "less now", level: "the same now" } satisfies Record<
    TrendRow["trend"],
    string
  >,
  trendTitle: "Average; the arrow shows whether use is higher or lower now",
  free: "free",
  none: "No one has used a GPU lately.",
  more: "Show all",
  count: (count: number): string => `${count} ${count === 1 ? "user" : "users"}`,
  failed: "Could not load the averages.",
  earlier: (date: string): string => `Until ${date}, the averages are those of the older page.`,
} as const;
