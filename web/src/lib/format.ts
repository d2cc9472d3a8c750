/** Numbers as people read them. Unknown is a dash everywhere, never a zero. */
import type { Known } from "./columns";
import { strings } from "./strings";

const GIB = 2 ** 30;
const oneDigit = (value: number): string => value.toFixed(1);
const atMostOneDigit = (value: number): string => String(Math.round(value * 10) / 10);

/** Made when first needed: the tables behind it take a browser some milliseconds to read (lib/stream-worker.ts). */
function dateFormat(options: Intl.DateTimeFormatOptions): (epochSeconds: number) => string {
  let format: Intl.DateTimeFormat | null = null;
  return (epochSeconds) => (format ??= new Intl.DateTimeFormat("en-GB", options)).format(epochSeconds * 1000);
}
const wholeMoment = dateFormat({ dateStyle: "medium", timeStyle: "long" });
const shortMoment = dateFormat({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const clockTime = dateFormat({ timeStyle: "medium" });
const clockMinute = dateFormat({ timeStyle: "short" });

export function whole(value: Known): string {
  return value === null ? strings.unknownValue : String(Math.round(value));
}

export function percent(ratio: Known): string {
  return ratio === null ? strings.unknownValue : `${Math.round(ratio * 100)} %`;
}

/** GiB with one digit below 100 and none above; the unit is written by the caller. */
export function gib(bytes: Known): string {
  if (bytes === null) return strings.unknownValue;
  const value = bytes / GIB;
  return value >= 99.95 || value === 0 ? String(Math.round(value)) : oneDigit(value);
}

/** A size with the unit that suits it. */
export function size(bytes: Known): string {
  if (bytes === null) return strings.unknownValue;
  if (bytes >= 1024 * GIB) return `${oneDigit(bytes / GIB / 1024)} TiB`;
  if (bytes >= GIB) return `${gib(bytes)} GiB`;
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}

/** A size that stays as it is, such as a card's memory: no digit for its own sake. What changes keeps its digits. */
export function capacity(bytes: Known): string {
  if (bytes === null) return strings.unknownValue;
  if (bytes >= 1024 * GIB) return `${atMostOneDigit(bytes / GIB / 1024)} TiB`;
  return bytes >= GIB ? `${capacityGib(bytes)} GiB` : size(bytes);
}

/** The same in GiB; the unit is written by the caller. */
export function capacityGib(bytes: Known): string {
  if (bytes === null) return strings.unknownValue;
  return bytes >= 99.95 * GIB ? gib(bytes) : atMostOneDigit(bytes / GIB);
}

/** CPU in cores, such as 3.4. */
export function cores(value: Known): string {
  return value === null ? strings.unknownValue : oneDigit(value);
}

/** Two units at most: 42 s, 7 min, 3 h 12 min, 5 d 4 h. */
export function duration(seconds: Known): string {
  if (seconds === null) return strings.unknownValue;
  const total = Math.max(0, Math.floor(seconds));
  if (total < 60) return `${total} s`;
  const minutes = Math.floor(total / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return hours % 24 && days < 100 ? `${days} d ${hours % 24} h` : `${days} d`;
}

/** A point in time in the viewer's own zone, with the zone named. */
export function moment(epochSeconds: Known): string {
  if (epochSeconds === null) return strings.unknownValue;
  return wholeMoment(epochSeconds);
}

/** The same in short, such as "16 Nov, 10:03": where the year can be told. */
export function momentShort(epochSeconds: Known): string {
  return epochSeconds === null ? strings.unknownValue : shortMoment(epochSeconds);
}

/** The time of day in the viewer's own zone, such as 14:03:12. */
export function clock(epochSeconds: Known): string {
  return epochSeconds === null ? strings.unknownValue : clockTime(epochSeconds);
}

/** The time of day without seconds, such as 14:03: for a clock on the wall. */
export function clockMinutes(epochSeconds: number): string {
  return clockMinute(epochSeconds);
}

/** The viewer's zone with its present difference to UTC, such as "Europe/Berlin (UTC+1)". */
export function zoneName(now: Date = new Date()): string {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const offset = new Intl.DateTimeFormat("en-GB", { timeZoneName: "shortOffset" })
    .formatToParts(now)
    .find((part) => part.type === "timeZoneName")
    ?.value.replace("GMT", "UTC");
  return !offset || offset === timeZone ? timeZone : `${timeZone} (${offset})`;
}

/** A share between 0 and 1, or `null` if either side is unknown. */
export function share(part: Known, total: Known | undefined): Known {
  return part === null || total === null || total === undefined || total <= 0
    ? null
    : Math.min(1, Math.max(0, part / total));
}

/** How busy the CPUs are; without a measured share load per CPU, which may be more than 1. */
export function cpuLevel(ratio: Known, load: Known, count: Known | undefined): Known {
  return ratio !== null || load === null || !count ? ratio : load / count;
}
