/* Exported: start, stop, versions, and ways to a device handle. */
#include <stdio.h>
#include <string.h>

#include "runtime.h"

NVML_API nvmlReturn_t nvmlInit(void) { return begin_init(FN_nvmlInit); }
NVML_API nvmlReturn_t nvmlInit_v2(void) { return begin_init(FN_nvmlInit_v2); }
NVML_API nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return begin_init(FN_nvmlInitWithFlags);
}
NVML_API nvmlReturn_t nvmlShutdown(void) { return begin_shutdown(); }

NVML_API const char *nvmlErrorString(nvmlReturn_t result)
{
    static const char *const texts[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
        "Already Initialized", "Not Found", "Insufficient Size", "Insufficient External Power",
        "Driver Not Loaded", "Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found",
        "Function Not Found", "Corrupted infoROM", "GPU is lost", "GPU requires reset",
        "Operating System Blocked Request", "Driver/library version mismatch", "In use by another client",
        "Insufficient Memory", "No data", "vGPU ECC not supported", "Insufficient resources",
        "Frequency not supported", "Argument version mismatch", "Deprecated", "Not ready", "GPU not found",
        "Invalid state", "Reset type not supported"};
    return result < sizeof texts / sizeof texts[0] ? texts[result] : "Unknown Error";
}

#define SYSTEM_TEXT(name, member) \
    NVML_API nvmlReturn_t name(char *buffer, unsigned int length) \
    { \
        struct call call; \
        nvmlReturn_t result = begin_system(&call, FN_##name); \
        return result != NVML_SUCCESS ? result : finish(copy_text(call.scenario->member, buffer, length)); \
    }
SYSTEM_TEXT(nvmlSystemGetDriverVersion, driver_version)
SYSTEM_TEXT(nvmlSystemGetNVMLVersion, nvml_version)

static nvmlReturn_t cuda_version(enum function function, int *version)
{
    struct call call;
    nvmlReturn_t result = begin_system(&call, function);
    if (result != NVML_SUCCESS)
        return result;
    int major, minor;
    const char *text = call.scenario->cuda_version;
    if (text == NULL || sscanf(text, "%d.%d", &major, &minor) != 2)
        return finish(NVML_ERROR_NOT_SUPPORTED);
    *version = major * 1000 + minor * 10;
    return finish(NVML_SUCCESS);
}
NVML_API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return cuda_version(FN_nvmlSystemGetCudaDriverVersion, version);
}
NVML_API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return cuda_version(FN_nvmlSystemGetCudaDriverVersion_v2, version);
}

NVML_API nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    struct call call;
    nvmlReturn_t result = begin_system(&call, FN_nvmlSystemGetProcessName);
    if (result != NVML_SUCCESS)
        return result;
    char path[32], text[256] = "";
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return finish(NVML_ERROR_NOT_FOUND);
    size_t read = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    if (read > 0 && text[read - 1] == '\n')
        text[read - 1] = '\0';
    return finish(copy_text(text, name, length));
}

static nvmlReturn_t count(enum function function, unsigned int *devices)
{
    struct call call;
    nvmlReturn_t result = begin_system(&call, function);
    if (result != NVML_SUCCESS)
        return result;
    *devices = (unsigned int)call.scenario->gpu_count;
    return finish(NVML_SUCCESS);
}
NVML_API nvmlReturn_t nvmlDeviceGetCount(unsigned int *devices) { return count(FN_nvmlDeviceGetCount, devices); }
NVML_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *devices) { return count(FN_nvmlDeviceGetCount_v2, devices); }

static nvmlReturn_t by_index(enum function function, unsigned int index, nvmlDevice_t *device)
{
    struct call call;
    nvmlReturn_t result = begin_index(&call, function, index);
    if (result != NVML_SUCCESS)
        return result;
    *device = device_of(call.gpu->handle);
    return finish(NVML_SUCCESS);
}
NVML_API nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return by_index(FN_nvmlDeviceGetHandleByIndex, index, device);
}
NVML_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    return by_index(FN_nvmlDeviceGetHandleByIndex_v2, index, device);
}

/* The handle of the first GPU or slice that `is_it` accepts. A fault on that GPU shows here too, as it does when a
 * lost card is asked for by UUID. */
static nvmlReturn_t by_search(enum function function, const char *wanted, nvmlDevice_t *device,
                              bool (*is_it)(const struct gpu *gpu, const char *wanted), bool slices)
{
    if (wanted == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    struct call call;
    nvmlReturn_t result = begin_search(&call);
    if (result != NVML_SUCCESS)
        return result;
    bool found = false;
    unsigned int handle = 0;
    for (size_t g = 0; !found && g < call.scenario->gpu_count; g++) {
        const struct gpu *gpu = &call.scenario->gpus[g];
        found = is_it(gpu, wanted);
        handle = gpu->handle;
        for (size_t s = 0; slices && !found && s < gpu->mig_slice_count; s++) {
            found = strcmp(gpu->mig_slices[s].uuid, wanted) == 0;
            handle = gpu->mig_slices[s].handle;
        }
    }
    finish(NVML_SUCCESS);
    result = found ? begin_device(&call, function, device_of(handle)) : begin_system(&call, function);
    if (result != NVML_SUCCESS)
        return result;
    *device = device_of(handle);
    return finish(found ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND);
}

static bool has_uuid(const struct gpu *gpu, const char *wanted) { return strcmp(gpu->uuid, wanted) == 0; }
static bool has_serial(const struct gpu *gpu, const char *wanted)
{
    return gpu->serial != NULL && strcmp(gpu->serial, wanted) == 0;
}
static bool has_bus_id(const struct gpu *gpu, const char *wanted)
{
    unsigned int domain, bus, device, function = 0;
    return gpu->pci_bus_id != NULL && sscanf(wanted, "%x:%x:%x.%x", &domain, &bus, &device, &function) >= 3 &&
           domain == gpu->pci_domain && bus == gpu->pci_bus && device == gpu->pci_device;
}
NVML_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    return by_search(FN_nvmlDeviceGetHandleByUUID, uuid, device, has_uuid, true);
}
NVML_API nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    return by_search(FN_nvmlDeviceGetHandleBySerial, serial, device, has_serial, false);
}
NVML_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return by_search(FN_nvmlDeviceGetHandleByPciBusId, bus_id, device, has_bus_id, false);
}
NVML_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    return by_search(FN_nvmlDeviceGetHandleByPciBusId_v2, bus_id, device, has_bus_id, false);
}
