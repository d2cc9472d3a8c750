/** Every word the page says of use: loaded with the parts that say them. */
import type { UsageKey, UsageSorting } from "../lib/usage-place";
import type { RangeName, Step } from "../lib/usage-range";

const plural = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

export const words = {
  heading: "Usage",
  loading: "Counting …",
  retry: "Try again",
  failed: "The use could not be counted",
  failedAgain: (why: string): string => `This is as it was counted before. ${why}`,
  zone: "Days in",
  ownZone: (zone: string): string => `${zone} (this browser)`,
  hubZone: (zone: string): string => `${zone} (the hub)`,

  range: {
    label: "Range",
    names: {
      "7d": "7 days",
      "30d": "30 days",
      "90d": "90 days",
      month: "This month",
      "last-month": "Last month",
      year: "Year",
    } satisfies Record<RangeName, string>,
    custom: "Choose days",
    first: "First day",
    last: "Last day",
    apply: "Count these",
    counted: (from: string, to: string): string => `Counted from ${from} to ${to}.`,
    steps: "In quarters of an hour; what is older than a week in whole hours.",
    missing: "Not everything of this range is known",
    part: (from: string, to: string, reason: string): string => `Not known from ${from} to ${to}: ${reason}`,
    moreParts: (count: number): string => plural(count, "more part", "more parts"),
  },

  empty: {
    title: "Nothing was counted in this range",
    begins: (when: string): string => `History begins ${when}. Choose a range after that.`,
    hint: "Choose another range, or come back when someone has used a GPU.",
  },

  figures: {
    label: "In short",
    hours: "GPU-hours used",
    ofCapacity: (share: string, capacity: string): string =>
      `${share} of ${capacity} that the herd could give`,
    capacityUnknown: "what the herd could have given is not known",
    efficiency: "At work",
    meanUtilization: (mean: string): string => `of what was held; mean utilisation ${mean}`,
    unknownHours: (hours: string): string => `${hours} GPU-hours with unknown utilisation left out`,
    waste: "Held idle",
    wasteUnit: "GPU-hours",
    wasteShare: (share: string): string => `${share} of what was held`,
    wasteCost: (cost: string): string => `cost ${cost}`,
    energy: "Energy",
    cost: (cost: string): string => `all use cost ${cost}`,
    energyUnknown: "no device told its power",
    perHour: (watts: string): string => `${watts} per GPU-hour used`,
    before: (was: string): string => `before: ${was}`,
    same: "as before",
    points: (points: number): string =>
      `${points > 0 ? "+" : "−"}${plural(Math.abs(points), "point", "points")}`,
    comparedTo: (from: string, to: string): string => `Compared with ${from} to ${to}.`,
    incomparable: "Not compared: of the time before, not everything is known.",
  },

  table: {
    label: (by: UsageKey): string => `Use by ${by}`,
    tabs: "By",
    by: { user: "User", group: "Group", node: "Node", type: "Type", job: "Job" } satisfies Record<
      UsageKey,
      string
    >,
    count: (by: UsageKey, count: number): string => plural(count, by, `${by}s`),
    columns: {
      name: "Name",
      hours: "GPU-hours",
      efficiency: "At work",
      waste: "Held idle",
      energy: "Energy",
      cost: "Cost",
      booked: "Booked",
      sessions: "Sessions",
    } satisfies Record<UsageSorting, string>,
    rank: "Rank",
    find: "Find in this table",
    placeholder: (by: UsageKey): string => `Find a ${by}`,
    unknown: {
      user: "unknown user",
      group: "in no group",
      node: "unknown node",
      type: "unknown type",
      job: "without a job",
    } satisfies Record<UsageKey, string>,
    total: "All",
    mine: "you",
    split: (busy: string, idle: string, unknown: string): string =>
      `${busy} at work, ${idle} held idle, ${unknown} unknown`,
    booked: (used: string, booked: string): string => `${used} of ${booked} h used`,
    bookedTitle: (others: string, unused: string): string =>
      `${others} h with only others on it, ${unused} h with nobody`,
    notBooked: "none",
    none: (by: UsageKey): string => `No ${by} with this name was counted.`,
    omitted: (rows: string): string => `${rows} with less are not listed; the sum counts them.`,
    howTitle: "How this is counted",
    how: [
      "A GPU is used while someone has a process on it. Several users share it by the memory that each holds; a slice counts as its part of the GPU.",
      "At work is what was held at a utilisation that counts as busy, held idle what was below.",
      "Time in which a node did not report counts for nobody. Who is in several groups counts in each, and once in the sum.",
    ],
    legend: { busy: "at work", held: "held idle", unknown: "unknown" },
  },

  sessions: {
    label: "Stays on devices, latest first",
    show: (count: string, name: string): string => `Sessions of ${name}: ${count}`,
    when: "When",
    where: "Where",
    what: "What",
    job: (job: string): string => `job ${job}`,
    goesOn: "goes on",
    none: "No stay of this range is kept.",
    more: (shown: number): string => `The latest ${shown}; the API has the others.`,
  },

  overTime: {
    heading: (by: UsageKey): string => `GPU-hours over time, by ${by}`,
    label: "GPU-hours over time",
    measure: "What to draw",
    measures: { gpu_hours: "Held", busy_hours: "At work" },
    step: "Step",
    steps: { hour: "Hours", day: "Days", week: "Weeks", month: "Months" } satisfies Record<Step, string>,
    others: "all others",
    all: "All",
    whole: "Whole range",
    gap: "not everything is known of this step",
    soFar: "so far",
    hint: "Arrow keys move from step to step",
    at: (when: string, parts: string): string => `${when}: ${parts}`,
  },

  hours: {
    heading: "Busiest hours",
    label: "Share of the GPUs by weekday and hour",
    measure: "Share of GPUs",
    measures: { busy: "At work", held: "Held idle", free: "Free" },
    sentence: (share: string, what: string): string => `${share} of the GPUs ${what.toLowerCase()}`,
    days: ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    cell: (day: string, from: string, to: string): string => `${day} ${from}–${to}`,
    of: (hours: string): string => `from ${hours} device-hours`,
    unknown: "not known",
    most: (what: string): string => `Most: ${what}`,
    least: (what: string): string => `Least: ${what}`,
    hint: "Arrow keys move through the hours",
    zone: (zone: string): string => `Hours in ${zone}`,
  },

  distribution: {
    heading: "How well GPUs in use were used",
    label: "Device-hours by utilisation",
    type: "Type",
    all: "All types",
    class: (from: string, to: string): string => `${from}–${to} %`,
    column: "Utilisation",
    hours: "Device-hours",
    share: "Share",
    summary: (share: string): string => `${share} of the time in use was below 10 % utilisation.`,
    none: "No device in use told its utilisation in this range.",
  },

  booked: {
    heading: "Booked and used",
    label: "Booked device-hours and what became of them",
    used: "used by the holder",
    others: "only others on it",
    unused: "nobody on it",
    summary: (share: string, hours: string): string => `${share} of ${hours} booked device-hours were used.`,
    row: (used: string, others: string, unused: string): string =>
      `${used} h used by the holder, ${others} h with only others, ${unused} h unused`,
    none: "No bookings in this range: they appear here when they have begun.",
  },

  files: {
    heading: "Take it with you",
    csv: "CSV",
    json: "JSON",
    table: (by: UsageKey): string => `This table, by ${by}`,
    all: "All rows of the range.",
    month: "Report of a month",
    html: "Web page",
    markdown: "Markdown",
    running: "not over yet",
  },
} as const;
