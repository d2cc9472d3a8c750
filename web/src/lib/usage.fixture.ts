/** Use as the hub tells it, for tests. */
import type { HourMap, UsageFigures, UsageOverTime, UsageReport, UsageRow } from "./usage";

export const figures = (changes: Partial<UsageFigures> = {}): UsageFigures => ({
  gpu_hours: 100,
  busy_hours: 70,
  idle_hours: 25,
  unknown_hours: 5,
  efficiency: 70 / 95,
  mean_utilization: 0.6,
  memory_gib_hours: 4000,
  energy_kwh: 30,
  cost: null,
  idle_cost: null,
  ...changes,
});

export const row = (
  key: string | null,
  changes: Partial<UsageFigures> = {},
  rest: Partial<UsageRow> = {},
): UsageRow => ({
  key,
  label: key ?? "",
  figures: figures(changes),
  users: 1,
  devices: 2,
  sessions: 3,
  bookings: null,
  ...rest,
});

export const report = (changes: Partial<UsageReport> = {}): UsageReport => ({
  start: 0,
  end: 86_400,
  by: "user",
  rows: [row("ada"), row("bo", { gpu_hours: 50 }), row(null, { gpu_hours: 10 })],
  omitted_rows: 0,
  totals: figures(),
  bookings: null,
  capacity_hours: 400,
  free_hours: 250,
  currency: null,
  missing: [],
  ...changes,
});

export const overTime = (changes: Partial<UsageOverTime> = {}): UsageOverTime => ({
  start: 0,
  end: 3 * 86_400,
  by: "user",
  step: "day",
  times: [0, 86_400, 2 * 86_400],
  keys: ["ada", null, "bo"],
  labels: ["Ada", "unknown", "bo"],
  gpu_hours: [
    [10, 20, 0],
    [1, 1, 1],
    [0, 0, 0],
  ],
  busy_hours: [
    [5, 10, 0],
    [0, 0, 0],
    [0, 0, 0],
  ],
  others_gpu_hours: [0, 4, 2],
  others_busy_hours: [0, 0, 0],
  missing: [],
  ...changes,
});

export function hourMap(share: (day: number, hour: number) => number | null): HourMap {
  const grid = <Value>(value: (day: number, hour: number) => Value): Value[][] =>
    Array.from({ length: 7 }, (_, day) => Array.from({ length: 24 }, (_, hour) => value(day, hour)));
  return {
    start: 0,
    end: 7 * 86_400,
    zone: "UTC",
    busy: grid(share),
    held: grid(() => null),
    free: grid(() => 0),
    hours: grid(() => 8),
    missing: [],
  };
}
