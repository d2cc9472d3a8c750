import { describe, expect, it } from "vitest";
import { HOST, lineKey, RecentMinutes, type RecentView, WINDOW_SECONDS } from "./recent";

const UTILIZATION = lineKey("GPU-0", "utilization_gpu");
const CPU = lineKey(HOST, "cpu_ratio");

function view(times: number[], values: (number | null)[]): RecentView {
  const unknown = times.map(() => null);
  return {
    node_id: "a",
    interval_seconds: 5,
    times,
    host: { cpu_ratio: values, memory_used_bytes: unknown },
    devices: {
      "GPU-0": {
        utilization_gpu: values,
        memory_used_bytes: unknown,
        temperature_celsius: unknown,
        power_watts: unknown,
        clock_sm_hertz: unknown,
      },
    },
  };
}

const now = (value: number | null): Map<string, number | null> => new Map([[UTILIZATION, value]]);

describe("RecentMinutes", () => {
  it("starts with what the hub remembers", () => {
    const recent = new RecentMinutes();
    recent.load(view([100, 105, 110], [0.1, null, 0.3]));
    const { times, lines } = recent.minutes([UTILIZATION, CPU, "GPU-9 power_watts"]);
    expect(times).toEqual([100, 105, 110]);
    expect(lines.get(UTILIZATION)).toEqual([0.1, null, 0.3]);
    expect(lines.get(CPU)).toEqual([0.1, null, 0.3]);
    expect(lines.get("GPU-9 power_watts")).toEqual([null, null, null]);
  });

  it("keeps one moment each five seconds, and the newest is always now", () => {
    const recent = new RecentMinutes();
    for (let second = 0; second <= 12; second += 1) recent.append(second, now(second / 100));
    const { times, lines } = recent.minutes([UTILIZATION]);
    expect(times).toEqual([0, 5, 10, 12]);
    expect(lines.get(UTILIZATION)).toEqual([0, 0.05, 0.1, 0.12]);
  });

  it("goes on from where the hub's memory ends", () => {
    const recent = new RecentMinutes();
    recent.append(112, now(0.9));
    recent.load(view([100, 105, 110], [0.1, 0.2, 0.3]));
    recent.append(113, now(0.8));
    expect(recent.minutes([UTILIZATION]).times).toEqual([100, 105, 110, 113]);
  });

  it("tells when moments are missing, shows the gap, and closes it when the hub remembers", () => {
    const recent = new RecentMinutes();
    expect(recent.append(100, now(0.5))).toBe(false);
    expect(recent.append(105, now(0.5))).toBe(false);
    expect(recent.append(205, now(0.7))).toBe(true);
    const { times, lines } = recent.minutes([UTILIZATION]);
    expect(times).toEqual([100, 105, 110, 205]);
    expect(lines.get(UTILIZATION)).toEqual([0.5, 0.5, null, 0.7]);
    recent.load(view([190, 195, 200], [0.1, 0.2, 0.3]));
    expect(recent.minutes([UTILIZATION]).lines.get(UTILIZATION)).toEqual([0.1, 0.2, 0.3, 0.7]);
  });

  it("forgets what is older than the window, and never goes back in time", () => {
    const recent = new RecentMinutes();
    for (let second = 0; second <= 2 * WINDOW_SECONDS; second += 5) recent.append(second, now(0));
    recent.append(3, now(1));
    const { times } = recent.minutes([UTILIZATION]);
    expect(times.length).toBeLessThanOrEqual(WINDOW_SECONDS / 5 + 2);
    expect(times.at(-1)).toBe(2 * WINDOW_SECONDS);
  });
});
