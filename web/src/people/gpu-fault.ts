/** Part of the start file, where the names of the files that it needs are listed anyway. */
export const gpuFault = () => import("./GpuFault.svelte");
