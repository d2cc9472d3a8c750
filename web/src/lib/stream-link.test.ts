import { beforeEach, describe, expect, it, vi } from "vitest";
import { change } from "./changes.fixture";
import { type HerdChange, type News, type Order, pack, sharedNow } from "./messages";
import { StreamLink } from "./stream-link";
import type { Listener } from "./stream";
import type { OwnCommands } from "./types";

/** Stands in for the worker: keeps what it was told and says what the test says. */
class ScriptedReader {
  readonly orders: Order[] = [];
  isOver = false;
  #hear: (event: { readonly data: News }) => void = () => undefined;
  #fail: () => void = () => undefined;

  postMessage(order: Order): void {
    this.orders.push(order);
  }

  addEventListener(type: "message" | "error", listener: never): void {
    if (type === "message") this.#hear = listener;
    else this.#fail = listener;
  }

  say(id: number, tick: number, at = sharedNow()): void {
    this.#hear({
      data: { kind: "change", id, at, change: pack(JSON.stringify(change({ tick }))).change },
    });
  }

  sayOwn(id: number, pid: number): void {
    const own = { node_id: ["a"], pid: [pid], started_at: [null], command: ["x"] };
    this.#hear({ data: { kind: "own", id, own } });
  }

  tell(kind: "closed" | "refused" | "unreadable", id: number): void {
    this.#hear({ data: { kind, id } });
  }

  fail(): void {
    this.#fail();
  }

  terminate(): void {
    this.isOver = true;
  }
}

class Heard implements Listener {
  readonly all: (number | string)[] = [];
  waited = 0;
  message = ({ tick }: HerdChange, waitedSeconds: number): void => {
    this.all.push(tick);
    this.waited = waitedSeconds;
  };
  own = ({ pid }: OwnCommands): void => void this.all.push(`own ${pid.join()}`);
  closed = (): void => void this.all.push("closed");
  refused = (): void => void this.all.push("refused");
  unreadable = (): void => void this.all.push("unreadable");
}

describe("StreamLink", () => {
  /** The last one, and all. */
  let reader: ScriptedReader;
  let readers: ScriptedReader[];
  let link: StreamLink;
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    readers = [];
    link = new StreamLink(() => {
      reader = new ScriptedReader();
      readers.push(reader);
      return reader;
    }, new URL("http://hub.test/api/v1/stream"));
  });

  it("connects before anyone listens and keeps what comes, in its order", () => {
    expect(reader.orders).toEqual([{ kind: "open", id: 1, url: "http://hub.test/api/v1/stream" }]);
    reader.say(1, 1, sharedNow() - 2000);
    const heard = new Heard();
    link.open(heard);
    reader.say(1, 2);
    expect(heard.all).toEqual([]);
    vi.runAllTimers();
    expect(heard.all).toEqual([1, 2]);
    reader.sayOwn(1, 7);
    reader.say(1, 3, sharedNow() - 1500);
    expect(heard.all).toEqual([1, 2, "own 7", 3]);
    expect(heard.waited).toBeGreaterThanOrEqual(1.5);
    expect(reader.orders.filter(({ kind }) => kind === "open")).toHaveLength(1);
    expect(reader.orders.filter(({ kind }) => kind === "taken")).toHaveLength(3);
  });

  it("opens another connection for the next, and hears nothing more of the former", () => {
    const first = new Heard();
    link.open(first).close();
    const second = new Heard();
    link.open(second);
    expect(reader.orders.slice(1)).toMatchObject([
      { kind: "close", id: 1 },
      { kind: "open", id: 2 },
    ]);
    reader.say(1, 7);
    reader.tell("closed", 1);
    reader.say(2, 8);
    reader.tell("refused", 2);
    reader.tell("unreadable", 2);
    expect(first.all).toEqual([]);
    expect(second.all).toEqual([8, "refused", "unreadable"]);
  });

  it("tells a stream that ended before anyone listened, and a worker that cannot be had", () => {
    reader.fail();
    const heard = new Heard();
    link.open(heard);
    vi.runAllTimers();
    expect(heard.all).toEqual(["closed"]);
    link.open(heard);
    reader.fail();
    expect(heard.all).toEqual(["closed", "closed"]);
  });

  it("gets another worker when one has failed, and only then", () => {
    const heard = new Heard();
    link.open(heard).close();
    link.open(heard);
    expect(readers).toHaveLength(1);
    const first = reader;
    first.fail();
    link.open(heard);
    expect(first.isOver).toBe(true);
    expect(readers).toHaveLength(2);
    first.fail();
    reader.say(3, 1);
    expect(heard.all).toEqual(["closed", 1]);
  });
});
