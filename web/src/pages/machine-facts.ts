/** What is known of a machine and of a card, as names and values. */
import { capacity, cores, duration, percent, size, whole } from "../lib/format";
import type { View } from "../lib/live.svelte";
import type { DeviceEntry, NodeEntry } from "../lib/node";
import { pageStrings } from "../lib/page-strings";
import { strings } from "../lib/strings";

export type Fact = readonly [name: string, value: string | null | undefined];

const SKEW_WORTH_TELLING_SECONDS = 2;

export function machineFacts({ herd }: View, node: NodeEntry): Fact[] {
  const words = strings.facts;
  const { host, row } = node;
  const skew = herd.host("clock_skew_seconds", row);
  const uptime = herd.host("uptime_seconds", row);
  const load = herd.host("load_1m", row);
  const interval = herd.host("interval_seconds", row);
  const memory = host?.memory_total_bytes ?? null;
  const swap = host?.swap_total_bytes ?? null;
  return [
    [
      words.cpu,
      [host?.cpu_model, host?.cpu_count != null ? words.threads(host.cpu_count) : null]
        .filter(Boolean)
        .join(" · "),
    ],
    [words.load, load === null ? null : cores(load)],
    [
      words.memory,
      memory === null ? null : words.of(size(herd.host("memory_used_bytes", row)), capacity(memory)),
    ],
    [words.swap, swap ? words.of(size(herd.host("swap_used_bytes", row)), capacity(swap)) : null],
    [words.driver, host?.driver_version],
    [words.cuda, host?.cuda_version],
    [words.os, host?.os],
    [words.kernel, host?.kernel],
    [words.uptime, uptime === null ? null : duration(uptime)],
    [words.addresses, host?.addresses?.map(({ interface: name, ip }) => `${ip} (${name})`).join(", ")],
    [words.way, strings.way[node.way]],
    [words.agent, host?.agent_version],
    [words.interval, interval === null ? null : duration(interval)],
    [
      words.skew,
      skew === null
        ? null
        : Math.abs(skew) < SKEW_WORTH_TELLING_SECONDS
          ? words.skewNone
          : skew > 0
            ? words.skewAhead(duration(skew))
            : words.skewBehind(duration(-skew)),
    ],
    [words.calledItself, host && host.hostname !== node.name ? host.hostname : null],
  ];
}

export function deviceFacts({ herd }: View, node: NodeEntry, device: DeviceEntry): Fact[] {
  const words = pageStrings.gpu;
  const { facts, row } = device;
  const parent = node.devices.find((other) => other.facts.uuid === facts.parent_uuid);
  const fan = herd.device("fan_ratio", row);
  const clock = herd.device("clock_sm_hertz", row);
  const controller = herd.device("utilization_memory", row);
  const performance = herd.device("performance_state", row);
  const ecc = herd.device("ecc_uncorrected", row);
  const limits = herd.device("throttle_reasons", row);
  return [
    [words.model, facts.name],
    [words.profile, facts.profile],
    [words.parent, parent && pageStrings.pages.gpu(parent.label)],
    [strings.device.memory, facts.memory_total_bytes == null ? null : capacity(facts.memory_total_bytes)],
    [words.memoryBasis, facts.memory_basis && words.basis[facts.memory_basis]],
    [words.clock, clock === null ? null : words.clockOf(clock, facts.clock_sm_max_hertz ?? null)],
    [words.performance, performance === null ? null : `P${whole(performance)}`],
    [words.memoryController, controller === null ? null : percent(controller)],
    [words.fan, fan === null ? null : percent(fan)],
    [words.throttle, limits === null ? null : limitWords(limits) || words.notThrottled],
    [words.ecc, ecc === null ? null : ecc === 0 ? words.eccNone : whole(ecc)],
    [words.compute, facts.compute_capability],
    [words.pci, facts.pci_bus_id],
    [strings.facts.driver, node.host?.driver_version],
  ];
}

/** Everything that keeps the clocks down, also what is no trouble. */
export function limitWords(flags: number): string {
  return Object.entries(pageStrings.gpu.throttleReasons)
    .filter(([bit]) => (flags & Number(bit)) !== 0)
    .map(([, word]) => word)
    .join(", ");
}
