/* Exported: what a device is, and its memory. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime.h"

#define DEVICE_TEXT(name, expression) \
    NVML_API nvmlReturn_t name(nvmlDevice_t device, char *buffer, unsigned int length) \
    { \
        struct call call; \
        nvmlReturn_t result = begin_device(&call, FN_##name, device); \
        return result != NVML_SUCCESS ? result : finish(copy_text(expression, buffer, length)); \
    }
DEVICE_TEXT(nvmlDeviceGetUUID, call.slice != NULL ? call.slice->uuid : call.gpu->uuid)
DEVICE_TEXT(nvmlDeviceGetSerial, call.gpu->serial)
DEVICE_TEXT(nvmlDeviceGetVbiosVersion, call.gpu->vbios_version)

NVML_API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *buffer, unsigned int length)
{
    struct call call;
    nvmlReturn_t result = begin_device(&call, FN_nvmlDeviceGetName, device);
    if (result != NVML_SUCCESS)
        return result;
    if (call.slice == NULL)
        return finish(copy_text(call.gpu->name, buffer, length));
    char name[256];
    snprintf(name, sizeof name, "%.200s MIG %.40s", call.gpu->name, call.slice->profile);
    return finish(copy_text(name, buffer, length));
}

NVML_API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    struct call call;
    nvmlReturn_t result = begin_device(&call, FN_nvmlDeviceGetIndex, device);
    if (result != NVML_SUCCESS)
        return result;
    *index = call.slice == NULL ? call.gpu_index : (unsigned int)(call.slice - call.gpu->mig_slices);
    return finish(NVML_SUCCESS);
}

/* A fixed property of the whole GPU, or NOT_SUPPORTED where the scenario does not tell it. */
#define GPU_PROPERTY(name, type, is_told, expression) \
    NVML_API nvmlReturn_t name(nvmlDevice_t device, type *value) \
    { \
        struct call call; \
        nvmlReturn_t result = begin_whole_gpu(&call, FN_##name, device); \
        if (result != NVML_SUCCESS) \
            return result; \
        if (!(is_told)) \
            return finish(NVML_ERROR_NOT_SUPPORTED); \
        *value = (type)(expression); \
        return finish(NVML_SUCCESS); \
    }
GPU_PROPERTY(nvmlDeviceGetMinorNumber, unsigned int, !isnan(call.gpu->minor_number), call.gpu->minor_number)
GPU_PROPERTY(nvmlDeviceGetBrand, unsigned int, call.gpu->brand != NULL, call.gpu->brand_code)
GPU_PROPERTY(nvmlDeviceGetArchitecture, unsigned int, call.gpu->architecture != NULL, call.gpu->architecture_code)
GPU_PROPERTY(nvmlDeviceGetComputeMode, unsigned int, call.gpu->compute_mode != NULL, call.gpu->compute_mode_code)
GPU_PROPERTY(nvmlDeviceGetPersistenceMode, unsigned int, call.gpu->persistence_mode != UNSET,
             call.gpu->persistence_mode == YES)
GPU_PROPERTY(nvmlDeviceGetDisplayActive, unsigned int, call.gpu->display_active != UNSET,
             call.gpu->display_active == YES)
GPU_PROPERTY(nvmlDeviceGetDisplayMode, unsigned int, call.gpu->display_mode != UNSET, call.gpu->display_mode == YES)

NVML_API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    struct call call;
    nvmlReturn_t result = begin_device(&call, FN_nvmlDeviceGetCudaComputeCapability, device);
    if (result != NVML_SUCCESS)
        return result;
    if (call.gpu->compute_capability == NULL)
        return finish(NVML_ERROR_NOT_SUPPORTED);
    *major = (int)call.gpu->compute_major;
    *minor = (int)call.gpu->compute_minor;
    return finish(NVML_SUCCESS);
}

NVML_API nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetEccMode, device);
    if (result != NVML_SUCCESS)
        return result;
    if (call.gpu->ecc_mode == UNSET)
        return finish(NVML_ERROR_NOT_SUPPORTED);
    *current = *pending = call.gpu->ecc_mode == YES;
    return finish(NVML_SUCCESS);
}

/* Driver models exist on Windows only. */
static nvmlReturn_t driver_model(enum function function, nvmlDevice_t device)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, function, device);
    return result != NVML_SUCCESS ? result : finish(NVML_ERROR_NOT_SUPPORTED);
}
NVML_API nvmlReturn_t nvmlDeviceGetDriverModel(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    (void)current, (void)pending;
    return driver_model(FN_nvmlDeviceGetDriverModel, device);
}
#ifndef OLD_DRIVER
NVML_API nvmlReturn_t nvmlDeviceGetDriverModel_v2(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    (void)current, (void)pending;
    return driver_model(FN_nvmlDeviceGetDriverModel_v2, device);
}
#endif

/* --- PCI ------------------------------------------------------------------------------------------ */

NVML_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    struct call call;
    nvmlReturn_t result = begin_device(&call, FN_nvmlDeviceGetPciInfo_v3, device);
    if (result != NVML_SUCCESS)
        return result;
    const struct gpu *gpu = call.gpu;
    if (gpu->pci_bus_id == NULL)
        return finish(NVML_ERROR_NOT_SUPPORTED);
    memset(info, 0, sizeof *info);
    info->domain = gpu->pci_domain;
    info->bus = gpu->pci_bus;
    info->device = gpu->pci_device;
    info->pciDeviceId = isnan(gpu->pci_device_id) ? 0 : (unsigned int)gpu->pci_device_id;
    info->pciSubSystemId = isnan(gpu->pci_subsystem_id) ? 0 : (unsigned int)gpu->pci_subsystem_id;
    snprintf(info->busId, sizeof info->busId, "%08X:%02X:%02X.%X", gpu->pci_domain, gpu->pci_bus & 0xFF,
             gpu->pci_device & 0xFF, gpu->pci_function & 0xF);
    snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%04X:%02X:%02X.%X", gpu->pci_domain & 0xFFFF,
             gpu->pci_bus & 0xFF, gpu->pci_device & 0xFF, gpu->pci_function & 0xF);
    return finish(NVML_SUCCESS);
}

/* --- memory --------------------------------------------------------------------------------------- */

/* Of the GPU or slice; `used` without what the driver reserves for itself. */
static nvmlReturn_t memory(const struct call *call, nvmlMemory_v2_t *memory)
{
    const struct gpu *gpu = call->gpu;
    const struct mig_slice *slice = call->slice;
    nvmlReturn_t result = read_u64(call, slice ? &slice->memory_total_bytes : &gpu->memory_total_bytes, 1,
                                   &memory->total);
    if (result == NVML_SUCCESS)
        result = read_u64(call, slice ? &slice->memory_used_bytes : &gpu->memory_used_bytes, 1, &memory->used);
    if (result != NVML_SUCCESS)
        return result;
    if (read_u64(call, slice ? &slice->memory_reserved_bytes : &gpu->memory_reserved_bytes, 1, &memory->reserved) !=
        NVML_SUCCESS)
        memory->reserved = 0;
    uint64_t taken = memory->used + memory->reserved;
    memory->free = taken < memory->total ? memory->total - taken : 0;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *info)
{
    struct call call;
    nvmlReturn_t result = begin_device(&call, FN_nvmlDeviceGetMemoryInfo, device);
    if (result != NVML_SUCCESS)
        return result;
    nvmlMemory_v2_t now;
    result = memory(&call, &now);
    if (result == NVML_SUCCESS) /* the first version knows no reserved memory and counts it as used */
        *info = (nvmlMemory_t){.total = now.total, .free = now.free, .used = now.used + now.reserved};
    return finish(result);
}

#ifndef OLD_DRIVER
NVML_API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *info)
{
    struct call call;
    nvmlReturn_t result = begin_device(&call, FN_nvmlDeviceGetMemoryInfo_v2, device);
    if (result != NVML_SUCCESS)
        return result;
    if (info->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2))
        return finish(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    return finish(memory(&call, info));
}

NVML_API nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t device, nvmlConfComputeMemSizeInfo_t *info)
{
    /* Exported together with nvmlDeviceGetRunningProcessDetailList or not at all: nvitop deduces the layout of
     * process entries from the pair. */
    (void)info;
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetConfComputeMemSizeInfo, device);
    return result != NVML_SUCCESS ? result : finish(NVML_ERROR_NOT_SUPPORTED);
}
#endif

NVML_API nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *info)
{
    struct call call;
    nvmlReturn_t result = begin_device(&call, FN_nvmlDeviceGetBAR1MemoryInfo, device);
    if (result != NVML_SUCCESS)
        return result;
    const struct mig_slice *slice = call.slice;
    result = read_u64(&call, slice ? &slice->bar1_total_bytes : &call.gpu->bar1_total_bytes, 1, &info->bar1Total);
    if (result == NVML_SUCCESS)
        result = read_u64(&call, slice ? &slice->bar1_used_bytes : &call.gpu->bar1_used_bytes, 1, &info->bar1Used);
    if (result == NVML_SUCCESS)
        info->bar1Free = info->bar1Used < info->bar1Total ? info->bar1Total - info->bar1Used : 0;
    return finish(result);
}
