/** The tab's icon carries the number of free GPUs, so that a glance at the tab is enough. */

const PIXELS = 64;

/** What the icon says: a count of free GPUs, or that nothing can be said. */
export type IconNews = number | "unknown";

/** Draw the icon. White on dark or dark on green reads on any tab bar; unknown is a dash in a dashed frame. */
export function showFavicon(news: IconNews): void {
  const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = PIXELS;
  const pen = canvas.getContext("2d");
  if (!link || !pen) return;
  const hasFree = news !== "unknown" && news > 0;
  pen.fillStyle = hasFree ? "#5ffbd1" : "#111418";
  pen.beginPath();
  pen.roundRect(0, 0, PIXELS, PIXELS, 14);
  pen.fill();
  if (news === "unknown") {
    pen.strokeStyle = "#9aa3ad";
    pen.lineWidth = 5;
    pen.setLineDash([9, 7]);
    pen.beginPath();
    pen.roundRect(7, 7, PIXELS - 14, PIXELS - 14, 9);
    pen.stroke();
  }
  const text = news === "unknown" ? "–" : news > 999 ? "1k+" : String(news);
  const size = [0, 50, 42, 30][text.length] ?? 30;
  pen.fillStyle = hasFree ? "#0c2b22" : "#e9ecef";
  pen.font = `700 ${size}px ui-sans-serif, system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(text, PIXELS / 2, PIXELS / 2 + 3);
  link.type = "image/png";
  link.href = canvas.toDataURL("image/png");
}
