/** Numbers as people read them. Unknown is a dash everywhere, never a zero. */
import type { Known } from "./columns";
import { strings } from "./strings";

const GIB = 2 ** 30;
const wholeMoment = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });
const clockTime = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const clockMinute = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
const atMostOneDigit = new Intl.NumberFormat("en", { maximumFractionDigits: 1, useGrouping: false });
const oneDigit = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

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
  return value >= 99.95 || value === 0 ? String(Math.round(value)) : oneDigit.format(value);
}

/** A size with the unit that suits it. */
export function size(bytes: Known): string {
  if (bytes === null) return strings.unknownValue;
  if (bytes >= 1024 * GIB) return `${oneDigit.format(bytes / GIB / 1024)} TiB`;
  if (bytes >= GIB) return `${gib(bytes)} GiB`;
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}

/** A size that stays as it is, such as a card's memory: no digit for its own sake. What changes keeps its digits. */
export function capacity(bytes: Known): string {
  if (bytes === null) return strings.unknownValue;
  if (bytes >= 1024 * GIB) return `${atMostOneDigit.format(bytes / GIB / 1024)} TiB`;
  return bytes >= GIB ? `${capacityGib(bytes)} GiB` : size(bytes);
}

/** The same in GiB; the unit is written by the caller. */
export function capacityGib(bytes: Known): string {
  if (bytes === null) return strings.unknownValue;
  return bytes >= 99.95 * GIB ? gib(bytes) : atMostOneDigit.format(bytes / GIB);
}

/** CPU in cores, such as 3.4. */
export function cores(value: Known): string {
  return value === null ? strings.unknownValue : oneDigit.format(value);
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
  return wholeMoment.format(epochSeconds * 1000);
}

/** The time of day in the viewer's own zone, such as 14:03:12. */
export function clock(epochSeconds: Known): string {
  return epochSeconds === null ? strings.unknownValue : clockTime.format(epochSeconds * 1000);
}

/** The time of day without seconds, such as 14:03: for a clock on the wall. */
export function clockMinutes(epochSeconds: number): string {
  return clockMinute.format(epochSeconds * 1000);
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
