/** How far colours are from each other, for those who see all of them and for those who do not. */

type Triple = readonly [number, number, number];

export const VISIONS = ["normal", "protan", "deutan", "tritan"] as const;
export type Vision = (typeof VISIONS)[number];

/** What is left of linear RGB (Machado, Oliveira and Fernandes 2009, full severity). */
const SEEN: Record<Vision, readonly [Triple, Triple, Triple]> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protan: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deutan: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritan: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};
const XYZ: readonly [Triple, Triple, Triple] = [
  [0.4124564, 0.3575761, 0.1804375],
  [0.2126729, 0.7151522, 0.072175],
  [0.0193339, 0.119192, 0.9503041],
];

const dot = (a: Triple, b: Triple): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const apply = ([x, y, z]: readonly [Triple, Triple, Triple], v: Triple): Triple => [
  dot(x, v),
  dot(y, v),
  dot(z, v),
];
const each = ([a, b, c]: Triple, f: (value: number) => number): Triple => [f(a), f(b), f(c)];

function linear(hex: string): Triple {
  const channel = (at: number): number => Number.parseInt(hex.slice(at, at + 2), 16) / 255;
  return each([channel(1), channel(3), channel(5)], (c) =>
    c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4,
  );
}

/** Of two colours as `#rrggbb`, 1 to 21 (WCAG 2). */
export function contrast(a: string, b: string): number {
  const [dark, bright] = [a, b].map((hex) => dot(XYZ[1], linear(hex))).sort((x, y) => x - y);
  return ((bright ?? 0) + 0.05) / ((dark ?? 0) + 0.05);
}

export function labOf(hex: string, vision: Vision = "normal"): Triple {
  const seen = each(apply(SEEN[vision], linear(hex)), (c) => Math.min(1, Math.max(0, c)));
  const white = apply(XYZ, [1, 1, 1]);
  const f = (t: number): number => (t > 216 / 24389 ? Math.cbrt(t) : ((24389 / 27) * t + 16) / 116);
  const [x, y, z] = apply(XYZ, seen);
  const [fx, fy, fz] = [f(x / white[0]), f(y / white[1]), f(z / white[2])];
  return [116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)];
}

const radians = (degrees: number): number => (degrees * Math.PI) / 180;
const degrees = (angle: number): number => ((angle * 180) / Math.PI + 360) % 360;

/** CIEDE2000 of two colours in CIELAB (Sharma, Wu and Dalal 2005). */
export function ciede2000([l1, a1, b1]: Triple, [l2, a2, b2]: Triple): number {
  const mean = (Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2;
  const grow = 1.5 - 0.5 * Math.sqrt(mean ** 7 / (mean ** 7 + 25 ** 7));
  const [c1, c2] = [Math.hypot(a1 * grow, b1), Math.hypot(a2 * grow, b2)];
  const [h1, h2] = [degrees(Math.atan2(b1, a1 * grow)), degrees(Math.atan2(b2, a2 * grow))];
  const isGrey = c1 * c2 === 0;
  const turn = isGrey ? 0 : ((h2 - h1 + 540) % 360) - 180;
  const hueDifference = 2 * Math.sqrt(c1 * c2) * Math.sin(radians(turn / 2));
  const [l, c] = [(l1 + l2) / 2, (c1 + c2) / 2];
  const h = isGrey ? h1 + h2 : (h1 + turn / 2 + 360) % 360;
  const t =
    1 -
    0.17 * Math.cos(radians(h - 30)) +
    0.24 * Math.cos(radians(2 * h)) +
    0.32 * Math.cos(radians(3 * h + 6)) -
    0.2 * Math.cos(radians(4 * h - 63));
  const sl = 1 + (0.015 * (l - 50) ** 2) / Math.sqrt(20 + (l - 50) ** 2);
  const sc = 1 + 0.045 * c;
  const sh = 1 + 0.015 * c * t;
  const rotation =
    -2 * Math.sqrt(c ** 7 / (c ** 7 + 25 ** 7)) * Math.sin(radians(60 * Math.exp(-(((h - 275) / 25) ** 2))));
  const [dl, dc, dh] = [(l2 - l1) / sl, (c2 - c1) / sc, hueDifference / sh];
  return Math.sqrt(dl ** 2 + dc ** 2 + dh ** 2 + rotation * dc * dh);
}

/** How well two colours as `#rrggbb` are told apart. */
export function difference(a: string, b: string, vision: Vision): number {
  return ciede2000(labOf(a, vision), labOf(b, vision));
}
