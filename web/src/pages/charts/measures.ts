/** The numbers of devices and hosts that have a chart, and how it shows them. */
import type { Measure } from "../../lib/chart";
import type { Known } from "../../lib/columns";
import type { View } from "../../lib/live.svelte";
import type { DeviceEntry } from "../../lib/node";
import { pageStrings } from "../../lib/page-strings";
import type { RecentDeviceNumber } from "../../lib/recent";

const words = pageStrings.charts;
const GIB = 2 ** 30;

const measure = (
  title: string,
  unit: string,
  scale: number,
  digits: 0 | 1,
  low: number,
  high: number,
): Measure => ({
  title,
  unit,
  scale,
  digits,
  low,
  high,
});

export const HOST_MEASURE = measure(words.host, "%", 0.01, 0, 0, 100);

/** Axes reach as far as the largest of the devices can. */
export function deviceMeasures(view: View, devices: readonly DeviceEntry[]): [RecentDeviceNumber, Measure][] {
  const most = (number: (device: DeviceEntry) => Known | undefined): number =>
    devices.reduce((high, device) => Math.max(high, number(device) ?? 0), 0);
  const memory = most(({ facts }) => facts.memory_total_bytes) / GIB || 1;
  const power = most(({ row }) => view.herd.device("power_limit_watts", row)) || 100;
  const clock = most(({ facts }) => facts.clock_sm_max_hertz) / 1e6 || 2000;
  return [
    ["utilization_gpu", measure(words.utilization, "%", 0.01, 0, 0, 100)],
    ["memory_used_bytes", measure(words.memory, "GiB", GIB, 1, 0, memory)],
    ["temperature_celsius", measure(words.temperature, "°C", 1, 0, 20, 90)],
    ["power_watts", measure(words.power, "W", 1, 0, 0, power)],
    ["clock_sm_hertz", measure(words.clock, "MHz", 1e6, 0, 0, clock)],
  ];
}
