/* Exported: numbers that change while one looks at them. All are properties of whole GPUs; slices have none. */
#include <math.h>

#include "runtime.h"

#define GPU_METRIC(name, type, read, member, scale) \
    NVML_API nvmlReturn_t name(nvmlDevice_t device, type *value) \
    { \
        struct call call; \
        nvmlReturn_t result = begin_whole_gpu(&call, FN_##name, device); \
        return result != NVML_SUCCESS ? result : finish(read(&call, &call.gpu->member, scale, value)); \
    }
#define U32_METRIC(name, member, scale) GPU_METRIC(name, unsigned int, read_u32, member, scale)

U32_METRIC(nvmlDeviceGetPowerUsage, power_watts, 1000)
U32_METRIC(nvmlDeviceGetEnforcedPowerLimit, power_limit_watts, 1000)
U32_METRIC(nvmlDeviceGetPowerManagementLimit, power_limit_watts, 1000)
U32_METRIC(nvmlDeviceGetPowerManagementDefaultLimit, power_limit_default_watts, 1000)
U32_METRIC(nvmlDeviceGetFanSpeed, fan_percent, 1)
U32_METRIC(nvmlDeviceGetPerformanceState, performance_state, 1)
U32_METRIC(nvmlDeviceGetPowerState, performance_state, 1)
U32_METRIC(nvmlDeviceGetPcieReplayCounter, pcie_replay_count, 1)
U32_METRIC(nvmlDeviceGetCurrPcieLinkGeneration, pcie_link_generation, 1)
U32_METRIC(nvmlDeviceGetCurrPcieLinkWidth, pcie_link_width, 1)
U32_METRIC(nvmlDeviceGetMaxPcieLinkGeneration, pcie_link_generation_max, 1)
U32_METRIC(nvmlDeviceGetMaxPcieLinkWidth, pcie_link_width_max, 1)
GPU_METRIC(nvmlDeviceGetTotalEnergyConsumption, uint64_t, read_u64, energy_joules, 1000)
GPU_METRIC(nvmlDeviceGetCurrentClocksThrottleReasons, uint64_t, read_u64, throttle_reasons, 1)
#ifndef OLD_DRIVER
GPU_METRIC(nvmlDeviceGetCurrentClocksEventReasons, uint64_t, read_u64, throttle_reasons, 1)
#endif

NVML_API nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *low,
                                                                   unsigned int *high)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetPowerManagementLimitConstraints, device);
    if (result != NVML_SUCCESS)
        return result;
    result = read_u32(&call, &call.gpu->power_limit_min_watts, 1000, low);
    if (result == NVML_SUCCESS)
        result = read_u32(&call, &call.gpu->power_limit_max_watts, 1000, high);
    return finish(result);
}

NVML_API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetUtilizationRates, device);
    if (result != NVML_SUCCESS)
        return result;
    result = read_u32(&call, &call.gpu->utilization_gpu_percent, 1, &utilization->gpu);
    if (result == NVML_SUCCESS)
        result = read_u32(&call, &call.gpu->utilization_memory_percent, 1, &utilization->memory);
    return finish(result);
}

static const unsigned int SAMPLING_PERIOD_MICROSECONDS = 167000; /* as real drivers answer */

#define CODEC_METRIC(name, member) \
    NVML_API nvmlReturn_t name(nvmlDevice_t device, unsigned int *percent, unsigned int *period) \
    { \
        struct call call; \
        nvmlReturn_t result = begin_whole_gpu(&call, FN_##name, device); \
        if (result != NVML_SUCCESS) \
            return result; \
        *period = SAMPLING_PERIOD_MICROSECONDS; \
        return finish(read_u32(&call, &call.gpu->member, 1, percent)); \
    }
CODEC_METRIC(nvmlDeviceGetEncoderUtilization, utilization_encoder_percent)
CODEC_METRIC(nvmlDeviceGetDecoderUtilization, utilization_decoder_percent)

/* --- temperature and fan -------------------------------------------------------------------------- */

enum { SENSOR_GPU = 0 };

NVML_API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned int sensor, unsigned int *celsius)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetTemperature, device);
    if (result != NVML_SUCCESS)
        return result;
    return finish(sensor != SENSOR_GPU ? NVML_ERROR_INVALID_ARGUMENT
                                       : read_u32(&call, &call.gpu->temperature_celsius, 1, celsius));
}

#ifndef OLD_DRIVER
NVML_API nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_v1_t *temperature)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetTemperatureV, device);
    if (result != NVML_SUCCESS)
        return result;
    if (temperature->version != NVML_STRUCT_VERSION(nvmlTemperature_v1_t, 1))
        return finish(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    if (temperature->sensorType != SENSOR_GPU)
        return finish(NVML_ERROR_INVALID_ARGUMENT);
    unsigned int celsius = 0;
    result = read_u32(&call, &call.gpu->temperature_celsius, 1, &celsius);
    temperature->temperature = (int)celsius;
    return finish(result);
}
#endif

NVML_API nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, unsigned int kind, unsigned int *celsius)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetTemperatureThreshold, device);
    if (result != NVML_SUCCESS)
        return result;
    const struct metric *threshold = kind == 0   ? &call.gpu->temperature_shutdown_celsius
                                     : kind == 1 ? &call.gpu->temperature_slowdown_celsius
                                                 : NULL;
    return finish(threshold != NULL ? read_u32(&call, threshold, 1, celsius) : NVML_ERROR_NOT_SUPPORTED);
}

NVML_API nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned int *fans)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetNumFans, device);
    if (result != NVML_SUCCESS)
        return result;
    unsigned int percent;
    *fans = read_u32(&call, &call.gpu->fan_percent, 1, &percent) == NVML_SUCCESS;
    return finish(NVML_SUCCESS);
}

NVML_API nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int *percent)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetFanSpeed_v2, device);
    if (result != NVML_SUCCESS)
        return result;
    return finish(fan != 0 ? NVML_ERROR_INVALID_ARGUMENT : read_u32(&call, &call.gpu->fan_percent, 1, percent));
}

/* --- clocks --------------------------------------------------------------------------------------- */

NVML_API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *mhz)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetClockInfo, device);
    if (result != NVML_SUCCESS)
        return result;
    const struct metric *clocks[] = {&call.gpu->clock_graphics_mhz, &call.gpu->clock_sm_mhz,
                                     &call.gpu->clock_memory_mhz, &call.gpu->clock_video_mhz};
    return finish(type > 3 ? NVML_ERROR_INVALID_ARGUMENT : read_u32(&call, clocks[type], 1, mhz));
}

NVML_API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *mhz)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetMaxClockInfo, device);
    if (result != NVML_SUCCESS)
        return result;
    const struct metric *clocks[] = {&call.gpu->clock_graphics_max_mhz, &call.gpu->clock_sm_max_mhz,
                                     &call.gpu->clock_memory_max_mhz, &call.gpu->clock_video_max_mhz};
    return finish(type > 3 ? NVML_ERROR_INVALID_ARGUMENT : read_u32(&call, clocks[type], 1, mhz));
}

/* --- memory errors -------------------------------------------------------------------------------- */

/* kind: 0 corrected, 1 uncorrected; counter: 0 volatile, 1 aggregate. */
static const struct metric *ecc_counter(const struct gpu *gpu, unsigned int kind, unsigned int counter)
{
    const struct metric *counters[2][2] = {
        {&gpu->ecc_corrected_volatile, &gpu->ecc_corrected_aggregate},
        {&gpu->ecc_uncorrected_volatile, &gpu->ecc_uncorrected_aggregate}};
    return kind > 1 || counter > 1 ? NULL : counters[kind][counter];
}

NVML_API nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned int kind, unsigned int counter,
                                                  uint64_t *errors)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetTotalEccErrors, device);
    if (result != NVML_SUCCESS)
        return result;
    const struct metric *metric = ecc_counter(call.gpu, kind, counter);
    return finish(metric == NULL ? NVML_ERROR_INVALID_ARGUMENT : read_u64(&call, metric, 1, errors));
}

NVML_API nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned int kind, unsigned int counter,
                                                      unsigned int location, uint64_t *errors)
{
    enum { DEVICE_MEMORY = 2 }; /* every simulated error is one of device memory */
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetMemoryErrorCounter, device);
    if (result != NVML_SUCCESS)
        return result;
    const struct metric *metric = ecc_counter(call.gpu, kind, counter);
    if (metric == NULL)
        return finish(NVML_ERROR_INVALID_ARGUMENT);
    result = read_u64(&call, metric, 1, errors);
    if (result == NVML_SUCCESS && location != DEVICE_MEMORY)
        *errors = 0;
    return finish(result);
}

NVML_API nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected,
                                                unsigned int *uncorrected, unsigned int *pending,
                                                unsigned int *failed)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetRemappedRows, device);
    if (result != NVML_SUCCESS)
        return result;
    result = read_u32(&call, &call.gpu->remapped_rows_corrected, 1, corrected);
    if (result == NVML_SUCCESS)
        result = read_u32(&call, &call.gpu->remapped_rows_uncorrected, 1, uncorrected);
    *pending = call.gpu->remapped_rows_pending == YES;
    *failed = call.gpu->remapped_rows_failed == YES;
    return finish(result);
}

NVML_API nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, unsigned int *is_pending)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetRetiredPagesPendingStatus, device);
    if (result != NVML_SUCCESS)
        return result;
    *is_pending = call.gpu->retired_pages_pending == YES;
    return finish(call.gpu->retired_pages_pending == UNSET ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS);
}

/* --- PCIe and field values ------------------------------------------------------------------------ */

NVML_API nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned int counter, unsigned int *kb_per_s)
{
    struct call call;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetPcieThroughput, device);
    if (result != NVML_SUCCESS)
        return result;
    const struct metric *metric = counter == 0   ? &call.gpu->pcie_tx_bytes_per_second
                                  : counter == 1 ? &call.gpu->pcie_rx_bytes_per_second
                                                 : NULL;
    return finish(metric == NULL ? NVML_ERROR_INVALID_ARGUMENT : read_u32(&call, metric, 1.0 / 1000, kb_per_s));
}

static void read_field(const struct call *call, nvmlFieldValue_t *field)
{
    enum { UNSIGNED_INT = 1, UNSIGNED_LONG_LONG = 3 };
    const struct gpu *gpu = call->gpu;
    static const struct metric not_supported = {.kind = WAVE_NOT_SUPPORTED};
    const struct metric *metric = &not_supported;
    double scale = 1;
    unsigned int type = UNSIGNED_LONG_LONG;
    switch (field->fieldId) {
    case 3: metric = &gpu->ecc_corrected_volatile; break;
    case 4: metric = &gpu->ecc_uncorrected_volatile; break;
    case 5: metric = &gpu->ecc_corrected_aggregate; break;
    case 6: metric = &gpu->ecc_uncorrected_aggregate; break;
    case 82: metric = &gpu->temperature_memory_celsius; type = UNSIGNED_INT; break;
    case 83: metric = &gpu->energy_joules; scale = 1000; break;
    case 94: metric = &gpu->pcie_replay_count; type = UNSIGNED_INT; break;
    case 142: metric = &gpu->remapped_rows_corrected; type = UNSIGNED_INT; break;
    case 143: metric = &gpu->remapped_rows_uncorrected; type = UNSIGNED_INT; break;
    case 230: metric = &gpu->recovery_action; type = UNSIGNED_INT; break;
    case 185: /* average */
    case 186: metric = &gpu->power_watts; scale = 1000; type = UNSIGNED_INT; break;
    case 187: metric = &gpu->power_limit_min_watts; scale = 1000; type = UNSIGNED_INT; break;
    case 188: metric = &gpu->power_limit_max_watts; scale = 1000; type = UNSIGNED_INT; break;
    default: break;
    }
    uint64_t value = 0;
    field->nvmlReturn = read_u64(call, metric, scale, &value);
    field->timestamp = (int64_t)wall_clock_microseconds();
    field->latencyUsec = 0;
    field->valueType = type;
    field->value.ullVal = value; /* little-endian: uiVal is its low half */
}

NVML_API nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    struct call call;
    if (values == NULL || count <= 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = begin_whole_gpu(&call, FN_nvmlDeviceGetFieldValues, device);
    if (result != NVML_SUCCESS)
        return result;
    for (int i = 0; i < count; i++)
        read_field(&call, &values[i]);
    return finish(NVML_SUCCESS);
}
