/** The page's end of the stream: speaks to the worker that reads it. */
import { type News, type Order, sharedNow, unpack } from "./messages";
import type { Listener, Source } from "./stream";

/** What of a `Worker` is needed. */
export interface Reader {
  postMessage(order: Order): void;
  addEventListener(type: "message", listener: (event: { readonly data: News }) => void): void;
  addEventListener(type: "error", listener: () => void): void;
  terminate(): void;
}

export class StreamLink {
  readonly #start: () => Reader;
  readonly #url: string;
  #reader: Reader;
  #isReaderBroken = false;
  #id = 0;
  #listener: Listener | null = null;
  /** Whether the connection opened ahead of time still waits for someone to listen, and what it has brought. */
  #isUnclaimed = true;
  #waiting: News[] = [];

  /** Connects at once: the first message may arrive while the rest of the page is still being loaded. */
  constructor(start: () => Reader, url: URL) {
    this.#start = start;
    this.#url = url.href;
    this.#reader = this.#begin();
    this.#connect();
  }

  /** Listen to the connection that is there, if nobody has yet, or to a new one. */
  open(listener: Listener): Source {
    if (!this.#isUnclaimed) this.#connect();
    this.#isUnclaimed = false;
    this.#listener = listener;
    const id = this.#id;
    // In a task of its own: whoever listens is not ready before this returns, and has enough to do.
    if (this.#waiting.length > 0) setTimeout(() => this.#deliver());
    return {
      close: () => {
        this.#reader.postMessage({ kind: "close", id });
        if (id === this.#id) this.#listener = null;
      },
    };
  }

  #begin(): Reader {
    const reader = this.#start();
    reader.addEventListener("message", ({ data }) => this.#receive(data));
    // The worker itself cannot be had: as good as a stream that cannot. The next connection gets another one.
    reader.addEventListener("error", () => {
      if (reader !== this.#reader) return;
      this.#isReaderBroken = true;
      this.#receive({ kind: "closed", id: this.#id });
    });
    return reader;
  }

  #connect(): void {
    if (this.#isReaderBroken) {
      this.#reader.terminate();
      this.#isReaderBroken = false;
      this.#reader = this.#begin();
    }
    this.#id += 1;
    this.#waiting = [];
    this.#reader.postMessage({ kind: "open", id: this.#id, url: this.#url });
  }

  #receive(news: News): void {
    // A connection that was given up may still have something under way; it belongs to the past.
    if (news.id !== this.#id) return;
    const isFirst = this.#waiting.push(news) === 1;
    if (this.#listener && isFirst) this.#deliver();
  }

  #deliver(): void {
    for (;;) {
      const news = this.#waiting.shift();
      const listener = this.#listener;
      if (!news || !listener) return;
      if (news.kind === "own") {
        listener.own(news.own);
        continue;
      }
      if (news.kind !== "change") {
        listener[news.kind]();
        continue;
      }
      const waitedSeconds = Math.max(0, (sharedNow() - news.at) / 1000);
      try {
        listener.message(unpack(news.change), waitedSeconds);
      } finally {
        this.#reader.postMessage({ kind: "taken", id: news.id });
      }
    }
  }
}
