/** What stands at a device of its bookings: who has it and for how long still, who had it, who is next. */
import type { DeviceBookingView } from "./types";

export interface Badge {
  readonly id: number;
  readonly holder: string;
  readonly title: string | null;
  readonly phase: DeviceBookingView["phase"];
  /** Seconds until it ends or begins, or since it ended. */
  readonly seconds: number;
  /** Someone else uses what is booked, or nobody does; `null` is as it should be, or not known. */
  readonly trouble: "violation" | "unused" | null;
}

/** One that begins later than this is not told before. */
const SOON_SECONDS = 86_400;
/** One that has just begun may be unused for a while. */
const GRACE_SECONDS = 1800;

/** The one that runs, or the one that ended last; and the next one if it is near. */
export function badgesOf(bookings: readonly DeviceBookingView[], now: number): readonly Badge[] {
  const badges = bookings.map(({ id, holder, title, starts_at, ends_at, use }): Badge => {
    const phase = ends_at <= now ? "past" : starts_at <= now ? "current" : "next";
    const isViolated = use === "others" || use === "shared";
    const isUnused = use === "unused" && now - starts_at > GRACE_SECONDS;
    return {
      id,
      holder,
      title,
      phase,
      seconds: phase === "past" ? now - ends_at : (phase === "current" ? ends_at : starts_at) - now,
      trouble: phase !== "current" ? null : isViolated ? "violation" : isUnused ? "unused" : null,
    };
  });
  const isRunning = badges.some(({ phase }) => phase === "current");
  return badges.filter(
    ({ phase, seconds }) =>
      phase === "current" || (!isRunning && (phase === "past" || seconds <= SOON_SECONDS)),
  );
}

/** The largest unit alone, as that is what there is room for: "3 d", "5 h", "12 min". */
export function roughly(seconds: number): string {
  const minutes = Math.max(1, Math.round(seconds / 60));
  if (minutes < 90) return `${minutes} min`;
  return minutes < 36 * 60 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} d`;
}
