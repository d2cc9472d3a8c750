/** Short names for what the hub tells of the past; the shapes themselves are generated from its OpenAPI document. */
import type { components } from "./api";

type Schemas = components["schemas"];

export type SeriesView = Schemas["SeriesView"];
export type SubjectSeries = Schemas["SubjectSeries"];
export type MetricSeries = Schemas["MetricSeries"];
export type StateSpan = Schemas["StateSpan"];
export type MissingPart = Schemas["MissingPart"];
export type HerdSeries = Schemas["HerdSeries"];
export type UserSeries = Schemas["UserSeries"];
export type UsageSession = Schemas["UsageSession"];
export type UsageSessions = Schemas["UsageSessions"];
export type Resolution = SeriesView["resolution"];
