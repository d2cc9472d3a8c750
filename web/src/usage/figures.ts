/** The numbers that stand on top of the usage page, ready to be read. */
import { words } from "./words";
import { percent } from "../lib/format";
import { changeOf, type UsageReport } from "../lib/usage";
import { amount, cost, energy, signedPercent } from "../lib/usage-format";

export interface Figure {
  readonly name: "hours" | "efficiency" | "waste" | "energy";
  readonly label: string;
  readonly value: string;
  readonly unit?: string;
  readonly details: readonly string[];
  /** What it was in the time before; `null` where that is not known. */
  readonly was: string | null;
  /** How it differs from that; `null` if it does not. */
  readonly change: string | null;
}

const text = words.figures;
const WATTS_PER_KW = 1000;
/** Less than this would only be read as a mistake. */
const LITTLE_HOURS = 0.05;

/** A share between two numbers, of which the second may not be known. */
const share = (part: number, whole: number | null): number | null =>
  whole === null || whole <= 0 ? null : part / whole;

export function figuresOf(report: UsageReport, before: UsageReport | null): readonly Figure[] {
  return [
    hours(report, before),
    efficiency(report, before),
    waste(report, before),
    energyUsed(report, before),
  ];
}

function signed(now: number | null, before: number | null | undefined): string | null {
  const change = changeOf(now, before);
  return change === null ? null : signedPercent(change);
}

function hours({ totals, capacity_hours }: UsageReport, before: UsageReport | null): Figure {
  const part = share(totals.gpu_hours, capacity_hours);
  return {
    name: "hours",
    label: text.hours,
    value: amount(totals.gpu_hours),
    details: [part === null ? text.capacityUnknown : text.ofCapacity(percent(part), amount(capacity_hours))],
    was: before && amount(before.totals.gpu_hours),
    change: signed(totals.gpu_hours, before?.totals.gpu_hours),
  };
}

function efficiency({ totals }: UsageReport, before: UsageReport | null): Figure {
  const was = before?.totals.efficiency ?? null;
  const points =
    totals.efficiency === null || was === null
      ? 0
      : Math.round(totals.efficiency * 100) - Math.round(was * 100);
  const details = [text.meanUtilization(percent(totals.mean_utilization))];
  if (totals.unknown_hours >= LITTLE_HOURS) details.push(text.unknownHours(amount(totals.unknown_hours)));
  return {
    name: "efficiency",
    label: text.efficiency,
    value: percent(totals.efficiency),
    details,
    was: was === null ? null : percent(was),
    change: points === 0 ? null : text.points(points),
  };
}

function waste({ totals, currency }: UsageReport, before: UsageReport | null): Figure {
  const part = share(totals.idle_hours, totals.gpu_hours);
  const details = part === null ? [] : [text.wasteShare(percent(part))];
  if (totals.idle_cost !== null) details.push(text.wasteCost(cost(totals.idle_cost, currency)));
  return {
    name: "waste",
    label: text.waste,
    value: amount(totals.idle_hours),
    unit: text.wasteUnit,
    details,
    was: before && amount(before.totals.idle_hours),
    change: signed(totals.idle_hours, before?.totals.idle_hours),
  };
}

function energyUsed({ totals, currency }: UsageReport, before: UsageReport | null): Figure {
  const [value, unit] = energy(totals.energy_kwh).split(" ");
  const details = [];
  if (totals.energy_kwh === null) details.push(text.energyUnknown);
  else if (totals.gpu_hours > 0)
    details.push(text.perHour(`${amount((totals.energy_kwh / totals.gpu_hours) * WATTS_PER_KW)} Wh`));
  if (totals.cost !== null) details.push(text.cost(cost(totals.cost, currency)));
  const was = before?.totals.energy_kwh ?? null;
  return {
    name: "energy",
    label: text.energy,
    value: value ?? "",
    ...(unit !== undefined && { unit }),
    details,
    was: was === null ? null : energy(was),
    change: signed(totals.energy_kwh, was),
  };
}
