/** Short names for what the hub tells of the past. */
export type Numbers = (number | null)[];
export interface MissingPart {
  start: number;
  end: number;
  reason: string;
}
export interface MetricSeries {
  mean: Numbers;
  low: Numbers;
  high: Numbers;
}
export interface StateSpan {
  start: number;
  end: number;
  state: string;
}
export interface SubjectSeries {
  node_id: string;
  uuid: string | null;
  metrics: Record<string, MetricSeries>;
  states: StateSpan[];
}
export type Resolution = "raw" | "minute" | "quarter_hour";
export interface SeriesView {
  start: number;
  end: number;
  step_seconds: number;
  resolution: Resolution;
  times: number[];
  subjects: SubjectSeries[];
  missing: MissingPart[];
}
export interface HerdSeries {
  start: number;
  end: number;
  step_seconds: number;
  resolution: Resolution;
  times: number[];
  types: string[];
  devices: Record<string, Numbers>;
  utilization_gpu: Numbers;
  memory_ratio: Numbers;
  power_watts: Numbers;
  missing: MissingPart[];
}
export interface UserSeries {
  user: string;
  start: number;
  end: number;
  step_seconds: number;
  times: number[];
  held_gpus: Numbers;
  busy_gpus: Numbers;
  power_watts: Numbers;
  memory_bytes: Numbers;
}
export interface UsageFigures {
  gpu_hours: number;
  busy_hours: number;
  idle_hours: number;
  unknown_hours: number;
  efficiency: number | null;
  mean_utilization: number | null;
  memory_gib_hours: number;
  energy_kwh: number | null;
  cost: number | null;
}
export interface UsageSession {
  id: string;
  node_id: string;
  uuid: string;
  node: string;
  type: string;
  user: string | null;
  container: string | null;
  job: string | null;
  command: string | null;
  started_at: number;
  ended_at: number | null;
  last_seen_at: number;
  figures: UsageFigures;
}
export interface UsageSessions {
  start: number;
  end: number;
  sessions: UsageSession[];
  is_complete: boolean;
  missing: MissingPart[];
}
