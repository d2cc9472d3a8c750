/**
 * Reads the live stream beside the page: taking a message of thousands of devices apart would hold up the page for longer
 * than showing it does.
 */
import { compareNames } from "./names";
import { type News, type Order, pack, sharedNow } from "./messages";
import type { OwnCommands } from "./types";

/** A page so busy that this many messages wait for it gets a new snapshot instead of all of them. */
const MOST_WAITING = 5;

let current: { id: number; source: EventSource; waiting: number } | null = null;

/**
 * Whoever first formats a date or sorts by name has to read the tables for that, which takes tens of milliseconds: better
 * here, while the hub is on its answer, than in the page, which then finds them read.
 */
function readTables(): void {
  new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" }).format();
  compareNames("a", "b");
}

const tell = (news: News, buffers: ArrayBuffer[] = []): void => {
  postMessage(news, { transfer: buffers });
};

function end(kind: "closed" | "refused" | "unreadable"): void {
  if (!current) return;
  const { id, source } = current;
  current = null;
  source.close();
  tell({ kind, id });
}

function take(event: MessageEvent): void {
  if (!current || event.target !== current.source) return;
  if (current.waiting >= MOST_WAITING) {
    end("closed");
    return;
  }
  try {
    const { change, buffers } = pack(String(event.data));
    tell({ kind: "change", id: current.id, at: sharedNow(), change }, buffers);
    current.waiting += 1;
  } catch {
    end("unreadable");
  }
}

/** What is told to this viewer alone. Small, and seldom: it does not count as waiting. */
function takeOwn(event: MessageEvent): void {
  if (!current || event.target !== current.source) return;
  try {
    tell({ kind: "own", id: current.id, own: JSON.parse(String(event.data)) as OwnCommands });
  } catch {
    end("unreadable");
  }
}

addEventListener("message", ({ data: order }: MessageEvent<Order>) => {
  if (order.kind === "open") {
    current?.source.close();
    const source = new EventSource(order.url);
    current = { id: order.id, source, waiting: 0 };
    source.addEventListener("snapshot", take);
    source.addEventListener("change", take);
    source.addEventListener("own", takeOwn);
    source.onerror = () => {
      // The browser would try again after a loss, but not after an answer that is no stream.
      if (current?.source === source) end(source.readyState === EventSource.CLOSED ? "refused" : "closed");
    };
    readTables();
  } else if (current?.id === order.id) {
    if (order.kind === "taken") current.waiting -= 1;
    else {
      current.source.close();
      current = null;
    }
  }
});
