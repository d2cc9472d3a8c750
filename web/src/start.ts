/**
 * The first to run, and small: it asks the hub for the herd before the rest of the page is there to show it. What it then
 * loads is named in index.html already (vite.config.ts), so nothing waits for it.
 */
import { StreamLink } from "./lib/stream-link";

const start = (): Worker =>
  new Worker(new URL("./lib/stream-worker.ts", import.meta.url), { type: "module" });
const link = new StreamLink(start, new URL("api/v1/stream", document.baseURI));
// In a task of its own: to read all of it took one already.
void import("./main").then(({ show }) => setTimeout(() => show(link)));
