/* What every exported function does first and last: lock, fresh scenario, clock, faults, device lookup. */
#ifndef GPUHERD_SIM_RUNTIME_H
#define GPUHERD_SIM_RUNTIME_H

#include <limits.h>

#include "nvml_abi.h"
#include "scenario.h"

/* Every exported function that can be slow or faulty; the names are what scenarios match. */
#define SIM_FUNCTIONS(X) \
    X(nvmlInit) X(nvmlInit_v2) X(nvmlInitWithFlags) X(nvmlShutdown) \
    X(nvmlSystemGetDriverVersion) X(nvmlSystemGetNVMLVersion) X(nvmlSystemGetProcessName) \
    X(nvmlSystemGetCudaDriverVersion) X(nvmlSystemGetCudaDriverVersion_v2) \
    X(nvmlDeviceGetCount) X(nvmlDeviceGetCount_v2) \
    X(nvmlDeviceGetHandleByIndex) X(nvmlDeviceGetHandleByIndex_v2) X(nvmlDeviceGetHandleByUUID) \
    X(nvmlDeviceGetHandleBySerial) X(nvmlDeviceGetHandleByPciBusId) X(nvmlDeviceGetHandleByPciBusId_v2) \
    X(nvmlDeviceGetName) X(nvmlDeviceGetUUID) X(nvmlDeviceGetSerial) X(nvmlDeviceGetVbiosVersion) \
    X(nvmlDeviceGetIndex) X(nvmlDeviceGetMinorNumber) X(nvmlDeviceGetBrand) X(nvmlDeviceGetArchitecture) \
    X(nvmlDeviceGetCudaComputeCapability) X(nvmlDeviceGetPciInfo_v3) \
    X(nvmlDeviceGetPersistenceMode) X(nvmlDeviceGetComputeMode) \
    X(nvmlDeviceGetDisplayActive) X(nvmlDeviceGetDisplayMode) X(nvmlDeviceGetDriverModel) \
    X(nvmlDeviceGetDriverModel_v2) X(nvmlDeviceGetEccMode) \
    X(nvmlDeviceGetMemoryInfo) X(nvmlDeviceGetMemoryInfo_v2) X(nvmlDeviceGetBAR1MemoryInfo) \
    X(nvmlDeviceGetConfComputeMemSizeInfo) \
    X(nvmlDeviceGetUtilizationRates) X(nvmlDeviceGetEncoderUtilization) X(nvmlDeviceGetDecoderUtilization) \
    X(nvmlDeviceGetTemperature) X(nvmlDeviceGetTemperatureV) X(nvmlDeviceGetTemperatureThreshold) \
    X(nvmlDeviceGetPowerUsage) X(nvmlDeviceGetEnforcedPowerLimit) X(nvmlDeviceGetPowerManagementLimit) \
    X(nvmlDeviceGetPowerManagementDefaultLimit) X(nvmlDeviceGetPowerManagementLimitConstraints) \
    X(nvmlDeviceGetTotalEnergyConsumption) X(nvmlDeviceGetFanSpeed) X(nvmlDeviceGetFanSpeed_v2) \
    X(nvmlDeviceGetNumFans) X(nvmlDeviceGetClockInfo) X(nvmlDeviceGetMaxClockInfo) \
    X(nvmlDeviceGetPerformanceState) X(nvmlDeviceGetPowerState) \
    X(nvmlDeviceGetCurrentClocksThrottleReasons) X(nvmlDeviceGetCurrentClocksEventReasons) \
    X(nvmlDeviceGetTotalEccErrors) X(nvmlDeviceGetMemoryErrorCounter) X(nvmlDeviceGetRemappedRows) \
    X(nvmlDeviceGetRetiredPagesPendingStatus) \
    X(nvmlDeviceGetPcieThroughput) X(nvmlDeviceGetPcieReplayCounter) \
    X(nvmlDeviceGetCurrPcieLinkGeneration) X(nvmlDeviceGetCurrPcieLinkWidth) \
    X(nvmlDeviceGetMaxPcieLinkGeneration) X(nvmlDeviceGetMaxPcieLinkWidth) X(nvmlDeviceGetFieldValues) \
    X(nvmlDeviceGetComputeRunningProcesses) X(nvmlDeviceGetComputeRunningProcesses_v2) \
    X(nvmlDeviceGetComputeRunningProcesses_v3) X(nvmlDeviceGetGraphicsRunningProcesses) \
    X(nvmlDeviceGetGraphicsRunningProcesses_v2) X(nvmlDeviceGetGraphicsRunningProcesses_v3) \
    X(nvmlDeviceGetMPSComputeRunningProcesses) X(nvmlDeviceGetMPSComputeRunningProcesses_v2) \
    X(nvmlDeviceGetMPSComputeRunningProcesses_v3) X(nvmlDeviceGetRunningProcessDetailList) \
    X(nvmlDeviceGetProcessUtilization) X(nvmlDeviceGetProcessesUtilizationInfo) \
    X(nvmlDeviceGetMigMode) X(nvmlDeviceGetMaxMigDeviceCount) X(nvmlDeviceGetMigDeviceHandleByIndex) \
    X(nvmlDeviceGetDeviceHandleFromMigDeviceHandle) X(nvmlDeviceIsMigDeviceHandle) \
    X(nvmlDeviceGetGpuInstanceId) X(nvmlDeviceGetComputeInstanceId) X(nvmlDeviceGetAttributes) \
    X(nvmlDeviceGetAttributes_v2) \
    X(nvmlEventSetCreate) X(nvmlEventSetFree) X(nvmlEventSetWait) X(nvmlEventSetWait_v2) \
    X(nvmlDeviceRegisterEvents) X(nvmlDeviceGetSupportedEventTypes)

enum function {
#define X(name) FN_##name,
    SIM_FUNCTIONS(X)
#undef X
    FUNCTION_COUNT
};

struct call {
    const struct scenario *scenario;
    const struct gpu *gpu;         /* NULL in calls that name no GPU */
    const struct mig_slice *slice; /* of `gpu`; NULL when the handle is the whole GPU's */
    unsigned int gpu_index;
    double t;                      /* seconds of scenario time */
};

/* Each begin_* returns NVML_SUCCESS with the lock held (give the result to finish()), or an error without it. */
nvmlReturn_t begin_init(enum function function);
nvmlReturn_t begin_shutdown(void);
nvmlReturn_t begin_system(struct call *call, enum function function);
/* Without latency and faults: for calls that must first find out which GPU they are about. */
nvmlReturn_t begin_search(struct call *call);
nvmlReturn_t begin_index(struct call *call, enum function function, unsigned int index);
nvmlReturn_t begin_device(struct call *call, enum function function, nvmlDevice_t device);
/* As begin_device, but an answer exists only for whole GPUs. */
nvmlReturn_t begin_whole_gpu(struct call *call, enum function function, nvmlDevice_t device);
nvmlReturn_t finish(nvmlReturn_t result);

nvmlDevice_t device_of(unsigned int handle);
/* The lock is dropped and taken again; the scenario may be another one afterwards. */
void pause_unlocked(struct call *call, double seconds);
uint64_t wall_clock_microseconds(void);

/* Quantised values of a metric, times `scale`; NVML_ERROR_NOT_SUPPORTED when it has none now. */
nvmlReturn_t read_u32(const struct call *call, const struct metric *metric, double scale, unsigned int *value);
nvmlReturn_t read_u64(const struct call *call, const struct metric *metric, double scale, uint64_t *value);
nvmlReturn_t copy_text(const char *text, char *buffer, unsigned int length);

#endif
