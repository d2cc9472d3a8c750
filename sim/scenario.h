/* A scenario file as structs. README.md describes the format; src/gpuherd/collect/scenario/cards.py is its twin. */
#ifndef GPUHERD_SIM_SCENARIO_H
#define GPUHERD_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>

#include "arena.h"
#include "wave.h"

enum tristate { UNSET = 0, NO, YES }; /* UNSET = not supported; must be 0 */

struct process {
    double pid;
    const char *type;
    bool compute, graphics;
    struct metric memory_used_bytes, sm_percent, memory_percent, encoder_percent, decoder_percent;
    double gpu_instance, compute_instance; /* NaN = none */
    double from, until;                    /* alive in [from, until) of scenario time */
};

struct process_list { const struct process *items; size_t count; };

struct mig_slice {
    const char *uuid, *profile;
    double gpu_instance, compute_instance;
    struct metric memory_total_bytes, memory_reserved_bytes, memory_used_bytes;
    struct metric bar1_total_bytes, bar1_used_bytes;
    struct process_list processes;
    unsigned int gpu_slices, compute_slices; /* from the profile: 1c.2g.10gb = 2 and 1 */
    unsigned int handle;
};

struct gpu {
    const char *uuid, *name, *serial, *vbios_version, *brand, *architecture, *compute_capability;
    const char *compute_mode, *pci_bus_id;
    double pci_device_id, pci_subsystem_id, minor_number, mig_slices_max; /* NaN = not supported */
    enum tristate persistence_mode, display_active, display_mode, ecc_mode, mig_mode;
    struct metric memory_total_bytes, memory_reserved_bytes, memory_used_bytes;
    struct metric bar1_total_bytes, bar1_used_bytes;
    struct metric utilization_gpu_percent, utilization_memory_percent;
    struct metric utilization_encoder_percent, utilization_decoder_percent;
    struct metric temperature_celsius, temperature_memory_celsius, temperature_slowdown_celsius;
    struct metric temperature_shutdown_celsius;
    struct metric power_watts, power_limit_watts, power_limit_default_watts;
    struct metric power_limit_min_watts, power_limit_max_watts;
    struct metric energy_joules, fan_percent;
    struct metric clock_graphics_mhz, clock_sm_mhz, clock_memory_mhz, clock_video_mhz;
    struct metric clock_graphics_max_mhz, clock_sm_max_mhz, clock_memory_max_mhz, clock_video_max_mhz;
    struct metric performance_state, throttle_reasons;
    struct metric ecc_corrected_volatile, ecc_uncorrected_volatile;
    struct metric ecc_corrected_aggregate, ecc_uncorrected_aggregate;
    struct metric remapped_rows_corrected, remapped_rows_uncorrected;
    enum tristate remapped_rows_pending, remapped_rows_failed, retired_pages_pending;
    struct metric recovery_action;
    struct metric pcie_tx_bytes_per_second, pcie_rx_bytes_per_second, pcie_replay_count;
    struct metric pcie_link_generation, pcie_link_width, pcie_link_generation_max, pcie_link_width_max;
    struct process_list processes;
    const struct mig_slice *mig_slices;
    size_t mig_slice_count;
    unsigned int brand_code, architecture_code, compute_mode_code, compute_major, compute_minor;
    unsigned int pci_domain, pci_bus, pci_device, pci_function;
    unsigned int handle;
};

enum effect { EFFECT_ERROR, EFFECT_HANG, EFFECT_HANG_LOCKED, EFFECT_CRASH };

struct fault {
    const char *function; /* shell pattern over exported symbols */
    double gpu;           /* NaN = any, and calls that name no GPU */
    double from, until;   /* scenario time */
    enum effect effect;
    unsigned int error;
};

struct latency { const char *function; double gpu, seconds; };
struct xid { double gpu, at, xid; };

struct scenario {
    struct arena arena;
    const char *driver_version, *cuda_version, *nvml_version;
    double epoch, frozen_time; /* NaN = absent */
    const struct gpu *gpus;
    size_t gpu_count;
    const struct fault *faults;
    size_t fault_count;
    const struct latency *latencies;
    size_t latency_count;
    const struct xid *xids;
    size_t xid_count;
};

/* NULL with a message naming the key ("gpus[0].power_watts: ...") in `error`. */
struct scenario *scenario_parse(const char *text, size_t length, char *error, size_t error_size);
void scenario_free(struct scenario *scenario);

#endif
