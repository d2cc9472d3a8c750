/** In which colours and patterns a history chart is drawn. */
import { dashOf } from "../pages/charts/plot";
import type { BandLook, StrokeLook } from "./draw";
import type { HistoryChartSpec } from "./lines";
import { statePattern } from "./patterns";

const PREVIOUS_DASH = [5, 4];
/** How much of a line's colour its band has, as the end of a colour. */
const BAND_ALPHA = "30";

/** Of what is drawn, in the colours that `style` has now; `banded` is the line that has a band, by its position. */
export function looksOf(
  { lines, isStacked }: HistoryChartSpec,
  banded: number | null,
  style: CSSStyleDeclaration,
): { strokes: StrokeLook[]; bands: BandLook[] } {
  const token = (name: string): string => style.getPropertyValue(name).trim();
  if (isStacked) {
    const fills = lines.map(({ state = "unknown" }) =>
      statePattern(state, token(`--state-${state}`), devicePixelRatio),
    );
    return {
      strokes: lines.map(({ state = "unknown" }, i) => ({
        colour: token(`--state-${state}`),
        fill: i === 0 ? fills[0] : undefined,
      })),
      bands: lines.slice(1).map((_, i) => ({ upper: i + 1, lower: i, fill: fills[i + 1] ?? "" })),
    };
  }
  const colourOf = (line: number): string => token(`--series-${((lines[line]?.colour ?? 0) % 8) + 1}`);
  const strokes: StrokeLook[] = lines.map(({ colour, isDashed }, i) => ({
    colour: colourOf(i),
    dash: isDashed ? PREVIOUS_DASH : dashOf(colour),
  }));
  if (banded === null) return { strokes, bands: [] };
  return {
    strokes: [...strokes, { colour: "" }, { colour: "" }],
    bands: [{ upper: lines.length, lower: lines.length + 1, fill: `${colourOf(banded)}${BAND_ALPHA}` }],
  };
}
