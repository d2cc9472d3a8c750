/** Every word of who holds GPUs: apart, since the page of users has it, too. */
import type { TrendRow } from "../lib/usage";

export const askWords = {
  loading: "Loading …",
  heading: "Whom to ask",
  label: "Who holds GPUs now, and held them lately",
  hint: "Moving averages of the GPUs held: who has many for long, and who just now.",
  user: "User",
  reserved: "Booked now",
  used: "Used now",
  idle: "Idle now",
  mean_2h: "2 h",
  mean_24h: "24 h",
  mean_1w: "1 week",
  trend: "Trend",
  trends: { up: "rising", down: "falling", level: "level" } satisfies Record<TrendRow["trend"], string>,
  trendTitle: "2 hours against 24 hours",
  free: "free",
  none: "Nobody has held a GPU lately.",
  more: "All figures",
  count: (count: number): string => `${count} ${count === 1 ? "user" : "users"}`,
  failed: "The averages could not be loaded.",
} as const;
