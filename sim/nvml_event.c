/* Exported: Xid events, delivered at the moments the scenario schedules. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime.h"

enum { MAX_REGISTERED = 64 };
static const double POLL_SECONDS = 0.01;

struct registration {
    nvmlDevice_t device;
    double next_at;    /* Xids before this moment are past: delivered, or older than the registration */
    size_t next_entry; /* among entries at exactly next_at: the first not delivered */
};

struct nvmlEventSet_st {
    struct registration registered[MAX_REGISTERED];
    size_t count;
};

NVML_API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    struct call call;
    nvmlReturn_t result = begin_system(&call, FN_nvmlEventSetCreate);
    if (result != NVML_SUCCESS)
        return result;
    *set = calloc(1, sizeof **set);
    return finish(*set != NULL ? NVML_SUCCESS : NVML_ERROR_MEMORY);
}

NVML_API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    struct call call;
    nvmlReturn_t result = begin_system(&call, FN_nvmlEventSetFree);
    if (result != NVML_SUCCESS)
        return result;
    free(set);
    return finish(NVML_SUCCESS);
}

NVML_API nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, uint64_t *types)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetSupportedEventTypes, device);
    if (result != NVML_SUCCESS)
        return result;
    *types = NVML_EVENT_XID_CRITICAL_ERROR;
    return finish(NVML_SUCCESS);
}

NVML_API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, uint64_t types, nvmlEventSet_t set)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceRegisterEvents, device);
    if (result != NVML_SUCCESS)
        return result;
    if ((types & ~NVML_EVENT_XID_CRITICAL_ERROR) != 0)
        return finish(NVML_ERROR_NOT_SUPPORTED);
    if (set->count == MAX_REGISTERED)
        return finish(NVML_ERROR_INVALID_ARGUMENT);
    set->registered[set->count++] = (struct registration){.device = device, .next_at = call.t};
    return finish(NVML_SUCCESS);
}

/* Takes the earliest Xid that is due for a registered GPU. */
static bool take_due(const struct call *call, nvmlEventSet_t set, nvmlEventData_t *data)
{
    const struct xid *best = NULL;
    struct registration *best_registration = NULL;
    for (size_t r = 0; r < set->count; r++) {
        struct registration *registration = &set->registered[r];
        for (size_t i = 0; i < call->scenario->xid_count; i++) {
            const struct xid *entry = &call->scenario->xids[i];
            bool is_new = entry->at > registration->next_at ||
                          (entry->at == registration->next_at && i >= registration->next_entry);
            bool is_ours = entry->gpu < (double)call->scenario->gpu_count &&
                           device_of(call->scenario->gpus[(size_t)entry->gpu].handle) == registration->device;
            if (is_ours && is_new && entry->at <= call->t && (best == NULL || entry->at < best->at)) {
                best = entry;
                best_registration = registration;
            }
        }
    }
    if (best == NULL)
        return false;
    best_registration->next_at = best->at;
    best_registration->next_entry = (size_t)(best - call->scenario->xids) + 1;
    *data = (nvmlEventData_t){.device = best_registration->device, .eventType = NVML_EVENT_XID_CRITICAL_ERROR,
                              .eventData = (uint64_t)best->xid, .gpuInstanceId = NVML_NOT_AVAILABLE_U32,
                              .computeInstanceId = NVML_NOT_AVAILABLE_U32};
    return true;
}

static double monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static nvmlReturn_t wait(enum function function, nvmlEventSet_t set, nvmlEventData_t *data, unsigned int milliseconds)
{
    struct call call;
    nvmlReturn_t result = begin_system(&call, function);
    if (result != NVML_SUCCESS)
        return result;
    if (set == NULL)
        return finish(NVML_ERROR_INVALID_ARGUMENT);
    double deadline = monotonic() + milliseconds * 1e-3;
    while (!take_due(&call, set, data)) {
        double left = deadline - monotonic();
        if (left <= 0)
            return finish(NVML_ERROR_TIMEOUT);
        pause_unlocked(&call, left < POLL_SECONDS ? left : POLL_SECONDS);
    }
    return finish(NVML_SUCCESS);
}

NVML_API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int milliseconds)
{
    return wait(FN_nvmlEventSetWait_v2, set, data, milliseconds);
}

NVML_API nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_v1_t *data, unsigned int milliseconds)
{
    nvmlEventData_t full;
    nvmlReturn_t result = wait(FN_nvmlEventSetWait, set, &full, milliseconds);
    if (result == NVML_SUCCESS)
        *data = (nvmlEventData_v1_t){full.device, full.eventType, full.eventData};
    return result;
}
