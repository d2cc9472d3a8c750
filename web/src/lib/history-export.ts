/** What files are called that are saved from charts. */
import type { Span } from "./timeline";
import { minuteText } from "./zone";

const LONGEST_NAME = 120;

/** Such as `gpuherd-h100-01-3-power-20261116T1000-20261116T1400.png`: no character that any system objects to. */
export function fileName(parts: readonly string[], { from, to }: Span, zone: string, ending: string): string {
  const words = ["gpuherd", ...parts]
    .map((part) =>
      part
        .normalize("NFKD")
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, "-")
        .replace(/^-+|-+$/g, ""),
    )
    .filter(Boolean)
    .join("-")
    .slice(0, LONGEST_NAME);
  const when = [from, to].map((at) => minuteText(at, zone).replace(/[-:]/g, "").replace(" ", "T"));
  return `${words}-${when.join("-")}.${ending}`;
}
