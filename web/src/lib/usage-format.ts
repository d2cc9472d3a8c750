/** Hours, energy and cost as people read them; unknown is a dash, and what is little is not nothing. */
import { strings } from "./strings";

const formats = new Map<number, Intl.NumberFormat>();

/** With a digit behind the point below 100, and two below 1. */
export function amount(value: number | null): string {
  if (value === null) return strings.unknownValue;
  const size = Math.abs(value);
  if (size > 0 && size < 0.005) return "< 0.01";
  const digits = size >= 99.95 || size === 0 ? 0 : size < 0.995 ? 2 : 1;
  let format = formats.get(digits);
  if (!format) formats.set(digits, (format = new Intl.NumberFormat("en", { maximumFractionDigits: digits })));
  return format.format(value);
}

/** In the unit that suits it. */
export function energy(kwh: number | null): string {
  if (kwh === null) return strings.unknownValue;
  return kwh >= 99_950 ? `${amount(kwh / 1000)} MWh` : `${amount(kwh)} kWh`;
}

export function cost(value: number | null, currency: string | null): string {
  return value === null ? strings.unknownValue : `${amount(value)} ${currency ?? ""}`.trim();
}

/** How much more or less, such as "+12 %"; `null` where it is the same to the eye. */
export function signedPercent(change: number): string | null {
  const points = Math.round(change * 100);
  if (points === 0) return null;
  return `${points > 0 ? "+" : "−"}${amount(Math.abs(points))} %`;
}
