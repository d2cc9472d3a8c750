/* Exported: who uses a device. */
#include <math.h>
#include <string.h>

#include "runtime.h"

enum usage { COMPUTE, GRAPHICS };

static bool is_listed(const struct call *call, const struct process *process, enum usage usage)
{
    return process->from <= call->t && call->t < process->until &&
           (usage == COMPUTE ? process->compute : process->graphics);
}

static unsigned int instance(double own, double of_slice)
{
    double id = isnan(own) ? of_slice : own;
    return isnan(id) ? NVML_NOT_AVAILABLE_U32 : (unsigned int)id;
}

static nvmlProcessDetail_v1_t describe(const struct call *call, const struct process *process,
                                       const struct mig_slice *slice)
{
    nvmlProcessDetail_v1_t entry = {
        .pid = (unsigned int)process->pid,
        .gpuInstanceId = instance(process->gpu_instance, slice ? slice->gpu_instance : NAN),
        .computeInstanceId = instance(process->compute_instance, slice ? slice->compute_instance : NAN),
        .usedGpuCcProtectedMemory = NVML_NOT_AVAILABLE_U64};
    if (read_u64(call, &process->memory_used_bytes, 1, &entry.usedGpuMemory) != NVML_SUCCESS)
        entry.usedGpuMemory = NVML_NOT_AVAILABLE_U64;
    return entry;
}

typedef void (*visitor)(void *context, const struct call *call, const struct process *process,
                        const struct mig_slice *slice);

/* Processes of the handle's slice, or of the GPU with all its slices. */
static void visit(const struct call *call, visitor visitor, void *context)
{
    const struct gpu *gpu = call->gpu;
    for (size_t i = 0; call->slice == NULL && i < gpu->processes.count; i++)
        visitor(context, call, &gpu->processes.items[i], NULL);
    for (size_t s = 0; s < gpu->mig_slice_count; s++) {
        const struct mig_slice *slice = &gpu->mig_slices[s];
        if (call->slice != NULL && call->slice != slice)
            continue;
        for (size_t i = 0; i < slice->processes.count; i++)
            visitor(context, call, &slice->processes.items[i], slice);
    }
}

/* Writes entries of one of three layouts while there is room, and counts all. */
struct listing {
    enum usage usage;
    enum { LAYOUT_V1, LAYOUT_V2, LAYOUT_DETAIL } layout;
    void *entries;
    unsigned int room, count;
};

static void list_one(void *context, const struct call *call, const struct process *process,
                     const struct mig_slice *slice)
{
    struct listing *listing = context;
    if (!is_listed(call, process, listing->usage))
        return;
    unsigned int at = listing->count++;
    if (listing->entries == NULL || at >= listing->room)
        return;
    nvmlProcessDetail_v1_t entry = describe(call, process, slice);
    if (listing->layout == LAYOUT_V1)
        ((nvmlProcessInfo_v1_t *)listing->entries)[at] = (nvmlProcessInfo_v1_t){entry.pid, entry.usedGpuMemory};
    else if (listing->layout == LAYOUT_V2)
        ((nvmlProcessInfo_t *)listing->entries)[at] = (nvmlProcessInfo_t){
            entry.pid, entry.usedGpuMemory, entry.gpuInstanceId, entry.computeInstanceId};
    else
        ((nvmlProcessDetail_v1_t *)listing->entries)[at] = entry;
}

static nvmlReturn_t list(const struct call *call, struct listing *listing, unsigned int *count)
{
    visit(call, list_one, listing);
    bool fits = listing->count == 0 || (listing->entries != NULL && listing->count <= listing->room);
    *count = listing->count;
    return fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

#ifndef OLD_DRIVER
/* Drivers 535.43 to 535.54 had larger entries in the _v3 lists; later ones went back. */
static bool has_large_entries(const struct call *call)
{
    const char *version = call->scenario->driver_version;
    return strncmp(version, "535.43", 6) == 0 || strncmp(version, "535.54", 6) == 0;
}
#endif

#define PROCESS_LIST(name, usage_, layout_) \
    NVML_API nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, void *entries) \
    { \
        struct call call; \
        if (count == NULL) \
            return NVML_ERROR_INVALID_ARGUMENT; \
        nvmlReturn_t result = begin_device(&call, FN_##name, device); \
        if (result != NVML_SUCCESS) \
            return result; \
        struct listing listing = {.usage = usage_, .layout = layout_, .entries = entries, .room = *count}; \
        return finish(list(&call, &listing, count)); \
    }
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses, COMPUTE, LAYOUT_V1)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, COMPUTE, LAYOUT_V2)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses, GRAPHICS, LAYOUT_V1)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, GRAPHICS, LAYOUT_V2)
#ifndef OLD_DRIVER
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, COMPUTE, has_large_entries(&call) ? LAYOUT_DETAIL : LAYOUT_V2)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, GRAPHICS, has_large_entries(&call) ? LAYOUT_DETAIL : LAYOUT_V2)
#endif

/* Nobody runs under MPS here. */
#define NO_PROCESSES(name) \
    NVML_API nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, void *entries) \
    { \
        struct call call; \
        (void)entries; \
        if (count == NULL) \
            return NVML_ERROR_INVALID_ARGUMENT; \
        nvmlReturn_t result = begin_device(&call, FN_##name, device); \
        if (result != NVML_SUCCESS) \
            return result; \
        *count = 0; \
        return finish(NVML_SUCCESS); \
    }
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
#ifndef OLD_DRIVER
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

NVML_API nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_v1_t *wanted)
{
    struct call call;
    nvmlReturn_t result = begin_device(&call, FN_nvmlDeviceGetRunningProcessDetailList, device);
    if (result != NVML_SUCCESS)
        return result;
    if (wanted->version != NVML_STRUCT_VERSION(nvmlProcessDetailList_v1_t, 1))
        return finish(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    if (wanted->mode > 1) { /* MPS */
        wanted->numProcArrayEntries = 0;
        return finish(NVML_SUCCESS);
    }
    struct listing listing = {.usage = wanted->mode == 0 ? COMPUTE : GRAPHICS, .layout = LAYOUT_DETAIL,
                              .entries = wanted->procArray, .room = wanted->numProcArrayEntries};
    return finish(list(&call, &listing, &wanted->numProcArrayEntries));
}
#endif

/* --- utilisation by process ----------------------------------------------------------------------- */

/* The driver keeps a sample every so often; a caller that has seen the newest gets NOT_FOUND. */
static const uint64_t SAMPLE_EVERY_MICROSECONDS = 100000;

struct sampling {
    nvmlProcessUtilizationSample_t *samples;
    nvmlProcessUtilizationInfo_v1_t *infos;
    uint64_t timestamp;
    unsigned int room, count;
};

static unsigned int percent(const struct call *call, const struct metric *metric)
{
    unsigned int value = 0;
    return read_u32(call, metric, 1, &value) == NVML_SUCCESS ? value : 0;
}

static void sample_one(void *context, const struct call *call, const struct process *process,
                       const struct mig_slice *slice)
{
    struct sampling *sampling = context;
    unsigned int sm, at;
    (void)slice;
    if ((!is_listed(call, process, COMPUTE) && !is_listed(call, process, GRAPHICS)) ||
        read_u32(call, &process->sm_percent, 1, &sm) != NVML_SUCCESS)
        return;
    at = sampling->count++;
    if (at >= sampling->room)
        return;
    unsigned int pid = (unsigned int)process->pid, memory = percent(call, &process->memory_percent);
    unsigned int encoder = percent(call, &process->encoder_percent), decoder = percent(call, &process->decoder_percent);
    if (sampling->samples != NULL)
        sampling->samples[at] = (nvmlProcessUtilizationSample_t){pid, sampling->timestamp, sm, memory, encoder, decoder};
    if (sampling->infos != NULL)
        sampling->infos[at] = (nvmlProcessUtilizationInfo_v1_t){sampling->timestamp, pid, sm, memory, encoder, decoder,
                                                                0, 0};
}

static nvmlReturn_t sample(const struct call *call, struct sampling *sampling, uint64_t last_seen, unsigned int *count)
{
    if (call->slice != NULL || call->gpu->mig_mode == YES)
        return NVML_ERROR_NOT_SUPPORTED; /* as on real MIG devices */
    sampling->timestamp = wall_clock_microseconds() / SAMPLE_EVERY_MICROSECONDS * SAMPLE_EVERY_MICROSECONDS;
    if (sampling->timestamp <= last_seen)
        return NVML_ERROR_NOT_FOUND;
    visit(call, sample_one, sampling);
    if (sampling->count == 0)
        return NVML_ERROR_NOT_FOUND;
    *count = sampling->count;
    bool fits = (sampling->samples != NULL || sampling->infos != NULL) && sampling->count <= sampling->room;
    return fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

NVML_API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                                      unsigned int *count, uint64_t last_seen)
{
    struct call call;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = begin_device(&call, FN_nvmlDeviceGetProcessUtilization, device);
    if (result != NVML_SUCCESS)
        return result;
    struct sampling sampling = {.samples = samples, .room = samples != NULL ? *count : 0};
    return finish(sample(&call, &sampling, last_seen, count));
}

#ifndef OLD_DRIVER
NVML_API nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                            nvmlProcessesUtilizationInfo_v1_t *wanted)
{
    struct call call;
    nvmlReturn_t result = begin_device(&call, FN_nvmlDeviceGetProcessesUtilizationInfo, device);
    if (result != NVML_SUCCESS)
        return result;
    if (wanted->version != NVML_STRUCT_VERSION(nvmlProcessesUtilizationInfo_v1_t, 1))
        return finish(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    struct sampling sampling = {.infos = wanted->procUtilArray,
                                .room = wanted->procUtilArray != NULL ? wanted->processSamplesCount : 0};
    return finish(sample(&call, &sampling, wanted->lastSeenTimeStamp, &wanted->processSamplesCount));
}
#endif
