/** How nodes are laid out on a screen that nobody touches: as large as they can be, on as many pages as they need. */

export interface WallLayout {
  readonly columns: number;
  readonly rows: number;
  readonly pages: number;
}

/** A node that is smaller than this cannot be read from across a room; in pixels of a screen whose shorter side has 1080. */
const LEAST_WIDTH = 250;
const LEAST_HEIGHT = 96;
/** A node that is higher than this only wastes the wall. */
const MOST_HEIGHT = 190;
/** Width to height of a node whose tiles are about square. */
const BEST_ASPECT = 3.6;
const REFERENCE_SIDE = 1080;

/** Lay `count` nodes out in `width` × `height` pixels of a screen whose shorter side is `side` long. */
export function layOutWall(count: number, width: number, height: number, side: number): WallLayout {
  const scale = Math.max(0.3, side / REFERENCE_SIDE);
  const mostColumns = Math.max(1, Math.floor(width / (LEAST_WIDTH * scale)));
  const mostRows = Math.max(1, Math.floor(height / (LEAST_HEIGHT * scale)));
  const leastRows = Math.min(mostRows, Math.max(1, Math.floor(height / (MOST_HEIGHT * scale))));
  const pages = Math.max(1, Math.ceil(count / (mostColumns * mostRows)));
  const onPage = Math.max(1, Math.ceil(count / pages));
  const candidates = Array.from({ length: mostColumns }, (_, i) => {
    const columns = i + 1;
    return { columns, rows: Math.max(leastRows, Math.ceil(onPage / columns)), pages };
  }).filter(({ rows }) => rows <= mostRows);
  const misfit = ({ columns, rows }: WallLayout): number =>
    Math.abs(Math.log(width / columns / (height / rows) / BEST_ASPECT));
  return candidates.reduce((best, candidate) => (misfit(candidate) < misfit(best) ? candidate : best), {
    columns: mostColumns,
    rows: mostRows,
    pages,
  });
}

/** How many cells stand in a row of a node's GPUs: eight, or as many more as keep them in two rows. */
export function tilesPerRow(count: number): number {
  return count <= 8 ? 8 : Math.ceil(count / 2);
}
