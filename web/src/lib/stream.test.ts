import { beforeEach, describe, expect, it } from "vitest";
import { change, node } from "./changes.fixture";
import type { HerdChange } from "./messages";
import { HerdStream, type Listener } from "./stream";
import type { FleetChange, OwnCommands } from "./types";

/** A world with its own time, in which nothing happens by itself. */
class World {
  monotonic = 100;
  wall = 5000;
  opened: Listener[] = [];
  closed = 0;
  #timers = new Map<number, { at: number; action: () => void }>();
  #nextId = 1;
  readonly stream = new HerdStream({
    open: (listener) => {
      this.opened.push(listener);
      return { close: () => (this.closed += 1) };
    },
    clocks: { monotonic: () => this.monotonic, wall: () => this.wall },
    timers: {
      set: (action, seconds) => {
        this.#timers.set(this.#nextId, { at: this.monotonic + seconds, action });
        return this.#nextId++;
      },
      clear: (id) => void this.#timers.delete(id),
    },
    random: () => 1,
    onUpdate: () => undefined,
  });

  /** Let time pass, running what falls due on the way. */
  pass(seconds: number): void {
    const end = this.monotonic + seconds;
    for (;;) {
      const due = [...this.#timers].filter(([, t]) => t.at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (!due) break;
      this.#move(due[1].at);
      this.#timers.delete(due[0]);
      due[1].action();
    }
    this.#move(end);
  }

  /** The machine sleeps: its monotonic clock stands still, timers do not run. */
  sleep(seconds: number): void {
    this.wall += seconds;
  }

  send(message: FleetChange): void {
    this.opened.at(-1)?.message(message, 0);
  }

  get phase(): string {
    const { connection } = this.stream;
    return connection.phase === "down" ? connection.trouble : connection.phase;
  }

  #move(to: number): void {
    this.wall += to - this.monotonic;
    this.monotonic = to;
  }
}

describe("HerdStream", () => {
  let world: World;
  beforeEach(() => {
    world = new World();
    world.stream.start();
  });

  const live = (tick = 1, time = 9000): void => world.send(change({ tick, time, nodes: [node(0)] }));

  it("is live from the first snapshot and counts ages by the hub's clock", () => {
    expect(world.phase).toBe("connecting");
    expect(world.stream.age()).toBeNull();
    live();
    expect(world.phase).toBe("live");
    world.pass(2);
    expect(world.stream.now()).toBe(9002);
    expect(world.stream.age()).toBe(2);
  });

  it("stays live while messages come and goes down when three are missing", () => {
    live();
    for (let tick = 2; tick < 20; tick++) {
      world.pass(1);
      world.send(change({ tick, after_tick: tick - 1, time: 8999 + tick }));
      expect(world.phase).toBe("live");
    }
    world.pass(4);
    expect(world.phase).toBe("silent");
    world.send(change({ tick: 20, after_tick: 19, time: 9023 }));
    expect(world.phase).toBe("live");
  });

  it("waits three ticks of a slow hub, not three seconds", () => {
    world.send(change({ tick: 1, time: 9000, tick_seconds: 3, nodes: [node(0)] }));
    world.pass(8);
    expect(world.phase).toBe("live");
    world.pass(2);
    expect(world.phase).toBe("silent");
  });

  it("stays connected from the first message to a hub that is slower than its patience", () => {
    world.send(change({ tick: 1, time: 9000, tick_seconds: 20, nodes: [node(0)] }));
    for (let tick = 2; tick < 5; tick += 1) {
      world.pass(20);
      expect(world.phase).toBe("live");
      world.send(change({ tick, after_tick: tick - 1, time: 8980 + 20 * tick, tick_seconds: 20 }));
    }
    expect(world.opened).toHaveLength(1);
  });

  it("opens another connection when one has been silent for long", () => {
    live();
    world.pass(12);
    expect(world.opened).toHaveLength(2);
    expect(world.closed).toBe(1);
    live(40, 9012);
    expect(world.phase).toBe("live");
  });

  it("reconnects for a snapshot when a tick is missing", () => {
    live();
    world.send(change({ tick: 3, after_tick: 2, time: 9002 }));
    expect(world.phase).toBe("gap");
    world.pass(1);
    expect(world.opened).toHaveLength(2);
    live(4, 9003);
    expect(world.phase).toBe("live");
  });

  it("keeps showing the last data, ageing, while the hub is away, and asks less and less often", () => {
    live();
    world.opened.at(-1)?.closed();
    expect(world.phase).toBe("closed");
    const attempts: number[] = [];
    for (let second = 0; second < 60; second++) {
      world.pass(1);
      if (world.opened.length > attempts.length + 1) {
        attempts.push(second);
        world.opened.at(-1)?.closed();
      }
    }
    expect(world.stream.herd.nodes).toHaveLength(1);
    expect(world.stream.age()).toBeCloseTo(60);
    expect(attempts.length).toBeGreaterThan(4);
    expect(attempts.length).toBeLessThan(10);
  });

  it("does not call anything live after sleep before a fresh snapshot", () => {
    live();
    world.sleep(3600);
    world.pass(1);
    expect(world.phase).toBe("slept");
    expect(world.stream.age()).toBeGreaterThan(3600);
    // What the old connection still had in its buffers is not listened to.
    world.opened[0]?.message(change({ tick: 2, after_tick: 1, time: 9001 }), 0);
    expect(world.phase).toBe("slept");
    world.pass(1);
    live(4000, 12_602);
    expect(world.phase).toBe("live");
    expect(world.stream.age()).toBe(0);
  });

  it("sees that delayed messages are old", () => {
    live();
    world.pass(1);
    world.send(change({ tick: 2, after_tick: 1, time: 9001 }));
    world.pass(8);
    world.send(change({ tick: 3, after_tick: 2, time: 9002 }));
    expect(world.phase).toBe("silent");
    expect(world.stream.age()).toBe(7);
    world.send(change({ tick: 4, after_tick: 3, time: 9009 }));
    expect(world.phase).toBe("live");
  });

  it("opens another connection when messages come but stay old, as after the hub's clock was set back", () => {
    live();
    let tick = 1;
    const second = (): void => {
      world.pass(1);
      tick += 1;
      // The second connection opens with a snapshot, as every one does.
      const isFirst = world.opened.length === 1;
      world.send(
        change({ tick, time: 8900 + tick, ...(isFirst ? { after_tick: tick - 1 } : { nodes: [node(0)] }) }),
      );
    };
    for (let i = 0; i < 9; i += 1) second();
    expect(world.phase).toBe("silent");
    for (let i = 0; i < 4; i += 1) second();
    expect(world.opened).toHaveLength(2);
    expect(world.phase).toBe("live");
    expect(world.stream.age()).toBe(0);
  });

  it("counts the age of a message that had to wait from when it arrived", () => {
    world.opened.at(-1)?.message(change({ time: 9000, nodes: [node(0)] }), 1.5);
    expect(world.phase).toBe("live");
    expect(world.stream.age()).toBe(1.5);
  });

  it.each<[string, (listener: Listener) => void]>([
    ["something that is no message", (listener) => listener.unreadable()],
    ["half of what is its own", (listener) => listener.own({} as OwnCommands)],
    ["half a message", (listener) => listener.message({ tick: 2, after_tick: null } as HerdChange, 0)],
  ])("is not live after %s", (_, send) => {
    live();
    send(world.opened.at(-1) as Listener);
    expect(world.phase).toBe("unreadable");
    world.pass(1);
    live(9, 9005);
    expect(world.phase).toBe("live");
  });

  it("connects at once when woken while waiting", () => {
    for (let i = 0; i < 6; i++) {
      world.opened.at(-1)?.closed();
      world.pass(16);
    }
    world.opened.at(-1)?.closed();
    const before = world.opened.length;
    world.stream.wake();
    expect(world.opened.length).toBe(before + 1);
  });

  it("asks again after it was refused, unless it is told to rest until someone has logged in", () => {
    live();
    world.opened.at(-1)?.refused();
    expect(world.phase).toBe("refused");
    world.pass(1);
    expect(world.opened).toHaveLength(2);
    world.stream.rest();
    world.pass(100);
    world.stream.wake();
    expect(world.opened).toHaveLength(2);
    expect(world.phase).toBe("refused");
    expect(world.stream.age()).toBeCloseTo(101);
    world.stream.renew();
    live(200, 9101);
    expect(world.opened).toHaveLength(3);
    expect(world.phase).toBe("live");
  });

  it("leaves nothing running after stop", () => {
    live();
    world.stream.stop();
    world.pass(100);
    expect(world.opened).toHaveLength(1);
    expect(world.closed).toBe(1);
  });
});
