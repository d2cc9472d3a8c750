/** Local times in a named zone, nights on which clocks are changed included. Seconds since the epoch throughout. */

export const HOUR = 3600;
export const DAY = 24 * HOUR;

/** What a clock on the wall and the calendar beside it show. */
export interface Wall {
  readonly year: number;
  /** From 1. */
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function format(zone: string, kind: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${kind} ${zone}`;
  let made = formats.get(key);
  if (!made)
    formats.set(
      key,
      (made = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hourCycle: "h23", ...options })),
    );
  return made;
}

/** The zone this browser is set to. */
export const browserZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Whether this browser knows a zone. */
export function isZone(zone: string): boolean {
  try {
    return zone !== "" && Boolean(new Intl.DateTimeFormat("en-GB", { timeZone: zone }));
  } catch {
    return false;
  }
}

/** Of a zone, by quarter of an hour: to ask the browser takes a hundred times as long, and a timeline asks thousands. */
const offsets = new Map<string, Map<number, number>>();
const QUARTER = 900;
const MOST_OFFSETS = 20_000;

/** How far the zone's clocks are ahead of UTC at a moment. They are only ever changed on a quarter of an hour. */
export function offsetAt(at: number, zone: string): number {
  let known = offsets.get(zone);
  if (!known || known.size > MOST_OFFSETS) offsets.set(zone, (known = new Map<number, number>()));
  const quarter = Math.floor(at / QUARTER);
  let offset = known.get(quarter);
  if (offset === undefined) known.set(quarter, (offset = askOffset(quarter * QUARTER, zone)));
  return offset;
}

function askOffset(at: number, zone: string): number {
  const numeric = {
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
  } as const;
  const parts = new Map(
    format(zone, "wall", numeric)
      .formatToParts(at * 1000)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const part = (name: Intl.DateTimeFormatPartTypes): number => parts.get(name) ?? 0;
  return Date.UTC(part("year"), part("month") - 1, part("day"), part("hour"), part("minute")) / 1000 - at;
}

export function wallOf(at: number, zone: string): Wall {
  const shown = new Date((at + offsetAt(at, zone)) * 1000);
  return {
    year: shown.getUTCFullYear(),
    month: shown.getUTCMonth() + 1,
    day: shown.getUTCDate(),
    hour: shown.getUTCHours(),
    minute: shown.getUTCMinutes(),
  };
}

/** When clocks show this: the first time if they do so twice, and after the gap if they leave it out. */
export function momentOf({ year, month, day, hour, minute }: Wall, zone: string): number {
  const utc = Date.UTC(year, month - 1, day, hour, minute) / 1000;
  const before = utc - offsetAt(utc - DAY, zone);
  const after = utc - offsetAt(utc + DAY, zone);
  return [before, after].find((at) => at + offsetAt(at, zone) === utc) ?? before;
}

/** The same time of day so many days later, whatever clocks do in between. */
export function addDays(at: number, days: number, zone: string): number {
  const wall = wallOf(at, zone);
  return momentOf({ ...wall, day: wall.day + days }, zone);
}

/** The first moment of the day that holds `at`, or of one so many days later; not always 00:00, which may be left out. */
export function startOfDay(at: number, zone: string, later = 0): number {
  const { year, month, day } = wallOf(at, zone);
  return momentOf({ year, month, day: day + later, hour: 0, minute: 0 }, zone);
}

const twoDigits = (value: number): string => String(value).padStart(2, "0");

/** The day as it stands in addresses, such as 2026-11-16. */
export function dayText(at: number, zone: string): string {
  const { year, month, day } = wallOf(at, zone);
  return `${year}-${twoDigits(month)}-${twoDigits(day)}`;
}

/** The start of a day that is written so; `null` if it is none. */
export function readDay(text: string, zone: string): number | null {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text)?.map(Number) ?? [];
  if (!year || !month || !day || year < 1970 || month > 12 || day > 31) return null;
  return momentOf({ year, month, day, hour: 0, minute: 0 }, zone);
}

/** As the hub reads it, and as a field for date and time takes it with a T between: 2026-11-16 18:00. */
export function minuteText(at: number, zone: string): string {
  const { hour, minute } = wallOf(at, zone);
  return `${dayText(at, zone)} ${twoDigits(hour)}:${twoDigits(minute)}`;
}

/** The moment that is written so; `null` if it is none. */
export function readMinute(text: string, zone: string): number | null {
  const [, year, month, day, hour, minute] =
    /^(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)$/.exec(text.trim())?.map(Number) ?? [];
  if (!year || !month || !day || hour === undefined || minute === undefined) return null;
  return momentOf({ year, month, day, hour, minute }, zone);
}

export function timeOfDay(at: number, zone: string): string {
  const { hour, minute } = wallOf(at, zone);
  return `${twoDigits(hour)}:${twoDigits(minute)}`;
}

/** Such as "Fri 20 Nov". */
export function dayName(at: number, zone: string): string {
  return format(zone, "day", { weekday: "short", day: "numeric", month: "short" })
    .format(at * 1000)
    .replace(",", "");
}

/** What the zone's time is called at a moment, such as CET. */
export function zoneShort(at: number, zone: string): string {
  const parts = format(zone, "zone", { timeZoneName: "short" }).formatToParts(at * 1000);
  return (
    parts
      .find(({ type }) => type === "timeZoneName")
      ?.value.replace("GMT+", "UTC+")
      .replace("GMT-", "UTC−") ?? zone
  );
}

/** Such as "Fri 20 Nov 18:00", with the year where it is not that of `now`. */
export function momentText(at: number, zone: string, now: number): string {
  const year = wallOf(at, zone).year;
  return `${dayName(at, zone)} ${year === wallOf(now, zone).year ? "" : `${year} `}${timeOfDay(at, zone)}`;
}

/** From when to when, with what both share said once: "Fri 20 Nov 18:00 – 21:00 CET". */
export function spanText(from: number, to: number, zone: string, now: number): string {
  const isOneDay = dayText(from, zone) === dayText(to, zone);
  const end = isOneDay ? timeOfDay(to, zone) : momentText(to, zone, now);
  const [first, last] = [zoneShort(from, zone), zoneShort(to, zone)];
  return `${momentText(from, zone, now)}${first === last ? "" : ` ${first}`} – ${end} ${last}`;
}
