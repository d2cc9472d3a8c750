/* Exported: slices of a GPU in MIG mode. */
#include <math.h>

#include "runtime.h"

enum { DEFAULT_SLICES_MAX = 7 };

NVML_API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetMigMode, device);
    if (result != NVML_SUCCESS)
        return result;
    if (call.gpu->mig_mode == UNSET)
        return finish(NVML_ERROR_NOT_SUPPORTED);
    *current = *pending = call.gpu->mig_mode == YES;
    return finish(NVML_SUCCESS);
}

NVML_API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetMaxMigDeviceCount, device);
    if (result != NVML_SUCCESS)
        return result;
    *count = call.gpu->mig_mode == UNSET         ? 0
             : isnan(call.gpu->mig_slices_max) ? DEFAULT_SLICES_MAX
                                               : (unsigned int)call.gpu->mig_slices_max;
    return finish(NVML_SUCCESS);
}

NVML_API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *slice)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetMigDeviceHandleByIndex, device);
    if (result != NVML_SUCCESS)
        return result;
    if (call.gpu->mig_mode != YES)
        return finish(NVML_ERROR_NOT_SUPPORTED);
    if (index >= call.gpu->mig_slice_count)
        return finish(NVML_ERROR_NOT_FOUND);
    *slice = device_of(call.gpu->mig_slices[index].handle);
    return finish(NVML_SUCCESS);
}

NVML_API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t slice, nvmlDevice_t *device)
{
    struct call call;
    nvmlReturn_t result = begin_device(&call, FN_nvmlDeviceGetDeviceHandleFromMigDeviceHandle, slice);
    if (result != NVML_SUCCESS)
        return result;
    if (call.slice == NULL)
        return finish(NVML_ERROR_INVALID_ARGUMENT);
    *device = device_of(call.gpu->handle);
    return finish(NVML_SUCCESS);
}

NVML_API nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_slice)
{
    struct call call;
    nvmlReturn_t result = begin_device(&call, FN_nvmlDeviceIsMigDeviceHandle, device);
    if (result != NVML_SUCCESS)
        return result;
    *is_slice = call.slice != NULL;
    return finish(NVML_SUCCESS);
}

#define INSTANCE_ID(name, member) \
    NVML_API nvmlReturn_t name(nvmlDevice_t device, unsigned int *id) \
    { \
        struct call call; \
        nvmlReturn_t result = begin_device(&call, FN_##name, device); \
        if (result != NVML_SUCCESS) \
            return result; \
        if (call.slice == NULL) \
            return finish(NVML_ERROR_NOT_SUPPORTED); \
        *id = (unsigned int)call.slice->member; \
        return finish(NVML_SUCCESS); \
    }
INSTANCE_ID(nvmlDeviceGetGpuInstanceId, gpu_instance)
INSTANCE_ID(nvmlDeviceGetComputeInstanceId, compute_instance)

static nvmlReturn_t attributes(enum function function, nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    struct call call;
    nvmlReturn_t result = begin_device(&call, function, device);
    if (result != NVML_SUCCESS)
        return result;
    if (call.slice == NULL)
        return finish(NVML_ERROR_NOT_SUPPORTED);
    uint64_t bytes = 0;
    read_u64(&call, &call.slice->memory_total_bytes, 1, &bytes);
    *attributes = (nvmlDeviceAttributes_t){
        .multiprocessorCount = 14 * call.slice->compute_slices, /* an A100 compute slice has 14 */
        .gpuInstanceSliceCount = call.slice->gpu_slices,
        .computeInstanceSliceCount = call.slice->compute_slices,
        .memorySizeMB = bytes >> 20};
    return finish(NVML_SUCCESS);
}
NVML_API nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t *wanted)
{
    return attributes(FN_nvmlDeviceGetAttributes, device, wanted);
}
NVML_API nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *wanted)
{
    return attributes(FN_nvmlDeviceGetAttributes_v2, device, wanted);
}
