/** Everything of the past that is loaded on demand, as one file: it shares most of its parts and compresses better so. */
export { default as HistoryCharts } from "./HistoryCharts.svelte";
export { default as OverTime } from "./OverTime.svelte";
export { default as RangeBar } from "./RangeBar.svelte";
export { default as UserPage } from "./UserPage.svelte";
