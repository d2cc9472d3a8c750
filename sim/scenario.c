#define _GNU_SOURCE
#include "scenario.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

enum { MAX_GPUS = 64, MAX_SLICES = 64 };

struct reader {
    struct arena *arena;
    char path[160]; /* of the value being read, for messages */
    char *error;
    size_t error_size;
};

static bool fail(struct reader *r, const char *format, ...)
{
    if (r->error[0] != '\0')
        return false;
    char message[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    snprintf(r->error, r->error_size, "%s: %s", r->path[0] ? r->path + (r->path[0] == '.') : "scenario", message);
    return false;
}

/* Appends to the path and returns the old length, to be given to leave(). */
static size_t enter(struct reader *r, const char *format, ...)
{
    size_t length = strlen(r->path);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->path + length, sizeof r->path - length, format, arguments);
    va_end(arguments);
    return length;
}

static void leave(struct reader *r, size_t length)
{
    r->path[length] = '\0';
}

/* --- objects by table ----------------------------------------------------------------------------- */

enum field_kind { TEXT, NUMBER, SECONDS, WHOLE, TRISTATE, METRIC, LIST, EFFECT, IGNORED };

struct list_kind;
struct field {
    const char *key;
    enum field_kind kind;
    size_t offset;       /* LIST: of the pointer to the items */
    bool required;       /* must be there, and not null unless it is a metric */
    bool never_null;
    const struct list_kind *list;
    size_t count_offset; /* LIST */
};

struct list_kind {
    size_t item_size;
    size_t limit;
    const struct field *fields;
    size_t field_count;
    void (*defaults)(void *item);
    bool (*check)(struct reader *r, void *item);
};

static bool read_metric(struct reader *r, const struct json *value, struct metric *metric);
static bool read_list(struct reader *r, const struct json *value, const struct field *field, char *target);

static bool read_effect(struct reader *r, const struct json *value, struct fault *fault)
{
    static const struct { const char *name; enum effect effect; } names[] = {
        {"hang", EFFECT_HANG}, {"hang_locked", EFFECT_HANG_LOCKED}, {"crash", EFFECT_CRASH}};
    if (value->kind == JSON_NUMBER && value->number >= 1 && value->number <= 999 &&
        value->number == floor(value->number)) {
        fault->effect = EFFECT_ERROR;
        fault->error = (unsigned int)value->number;
        return true;
    }
    for (size_t i = 0; value->kind == JSON_STRING && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(value->text, names[i].name) == 0)
            return fault->effect = names[i].effect, true;
    return fail(r, "expected an NVML error number, \"hang\", \"hang_locked\" or \"crash\"");
}

static bool read_field(struct reader *r, const struct json *value, const struct field *field, char *target)
{
    void *slot = target + field->offset;
    if (value->kind == JSON_NULL && field->kind != METRIC)
        return field->required || field->never_null || field->kind == LIST ? fail(r, "must not be null") : true;
    switch (field->kind) {
    case IGNORED:
        return true;
    case TEXT:
        if (value->kind != JSON_STRING)
            return fail(r, "expected a string");
        *(const char **)slot = value->text;
        return true;
    case NUMBER:
        if (value->kind != JSON_NUMBER)
            return fail(r, "expected a number");
        *(double *)slot = value->number;
        return true;
    case SECONDS:
        if (value->kind != JSON_NUMBER || fabs(value->number) > 1e11)
            return fail(r, "expected seconds, up to 1e11 either way");
        *(double *)slot = value->number;
        return true;
    case WHOLE:
        if (value->kind != JSON_NUMBER || value->number != floor(value->number) || value->number < 0 ||
            value->number > 4294967295.0)
            return fail(r, "expected a whole number from 0 to 2^32-1");
        *(double *)slot = value->number;
        return true;
    case TRISTATE:
        if (value->kind != JSON_TRUE && value->kind != JSON_FALSE)
            return fail(r, "expected true, false or null");
        *(enum tristate *)slot = value->kind == JSON_TRUE ? YES : NO;
        return true;
    case METRIC:
        return read_metric(r, value, slot);
    case EFFECT:
        return read_effect(r, value, (struct fault *)target);
    case LIST:
        return read_list(r, value, field, target);
    }
    return false;
}

static bool read_object(struct reader *r, const struct json *object, const struct field *fields, size_t count,
                        void *target)
{
    if (object->kind != JSON_OBJECT)
        return fail(r, "expected an object");
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        const struct field *field = NULL;
        for (size_t i = 0; i < count && field == NULL; i++)
            if (strcmp(fields[i].key, member->key) == 0)
                field = &fields[i];
        size_t length = enter(r, ".%.60s", member->key);
        if (field == NULL)
            return fail(r, "unknown key");
        if (!read_field(r, member, field, target))
            return false;
        leave(r, length);
    }
    for (size_t i = 0; i < count; i++) {
        bool found = !fields[i].required;
        for (const struct json *member = object->first; member != NULL && !found; member = member->next)
            found = strcmp(fields[i].key, member->key) == 0;
        if (!found)
            return fail(r, "misses the key \"%s\"", fields[i].key);
    }
    return true;
}

static bool read_list(struct reader *r, const struct json *value, const struct field *field, char *target)
{
    const struct list_kind *kind = field->list;
    if (value->kind != JSON_ARRAY)
        return fail(r, "expected a list");
    if (value->count > kind->limit)
        return fail(r, "more than %zu entries", kind->limit);
    char *items = arena_take(r->arena, kind->item_size * value->count + 1);
    if (items == NULL)
        return fail(r, "out of memory");
    char *item = items;
    size_t i = 0;
    for (const struct json *element = value->first; element != NULL; element = element->next) {
        size_t length = enter(r, "[%zu]", i++);
        if (kind->defaults != NULL)
            kind->defaults(item);
        if (!read_object(r, element, kind->fields, kind->field_count, item))
            return false;
        if (kind->check != NULL && !kind->check(r, item))
            return false;
        leave(r, length);
        item += kind->item_size;
    }
    *(void **)(target + field->offset) = items;
    *(size_t *)(target + field->count_offset) = value->count;
    return true;
}

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define KEY(struct_, member, kind_) {.key = #member, .kind = kind_, .offset = offsetof(struct struct_, member)}
#define REQUIRED_KEY(struct_, member, kind_) \
    {.key = #member, .kind = kind_, .offset = offsetof(struct struct_, member), .required = true}
#define PLAIN_KEY(struct_, member, kind_) /* optional, but null says nothing here */ \
    {.key = #member, .kind = kind_, .offset = offsetof(struct struct_, member), .never_null = true}
#define UNREAD_KEY(key_) {.key = key_, .kind = IGNORED} /* for the Python reader */

/* --- waveforms ------------------------------------------------------------------------------------ */

#define CLAMPS {.key = "wave", .kind = IGNORED}, KEY(metric, minimum, NUMBER), KEY(metric, maximum, NUMBER)

static const struct field sine_fields[] = {CLAMPS, REQUIRED_KEY(metric, mean, NUMBER),
    REQUIRED_KEY(metric, amplitude, NUMBER), REQUIRED_KEY(metric, period, NUMBER), PLAIN_KEY(metric, phase, NUMBER)};
static const struct field square_fields[] = {CLAMPS, REQUIRED_KEY(metric, low, NUMBER),
    REQUIRED_KEY(metric, high, NUMBER), REQUIRED_KEY(metric, period, NUMBER), PLAIN_KEY(metric, duty, NUMBER),
    PLAIN_KEY(metric, phase, NUMBER)};
static const struct field noise_fields[] = {CLAMPS, REQUIRED_KEY(metric, mean, NUMBER),
    REQUIRED_KEY(metric, amplitude, NUMBER), PLAIN_KEY(metric, period, NUMBER), {.key = "seed", .kind = IGNORED}};
static const struct field ramp_fields[] = {CLAMPS, PLAIN_KEY(metric, start, NUMBER),
    REQUIRED_KEY(metric, per_second, NUMBER)};
static const struct field steps_fields[] = {CLAMPS, PLAIN_KEY(metric, repeat, NUMBER),
    {.key = "steps", .kind = IGNORED, .required = true}};
static const struct field sum_fields[] = {CLAMPS, {.key = "parts", .kind = IGNORED, .required = true}};

static const struct wave { const char *name; enum wave_kind kind; const struct field *fields; size_t count; } waves[] = {
    {"sine", WAVE_SINE, sine_fields, LENGTH(sine_fields)},
    {"square", WAVE_SQUARE, square_fields, LENGTH(square_fields)},
    {"noise", WAVE_NOISE, noise_fields, LENGTH(noise_fields)},
    {"ramp", WAVE_RAMP, ramp_fields, LENGTH(ramp_fields)},
    {"steps", WAVE_STEPS, steps_fields, LENGTH(steps_fields)},
    {"sum", WAVE_SUM, sum_fields, LENGTH(sum_fields)},
};

static const struct json *member_of(const struct json *object, const char *key)
{
    const struct json *found = NULL;
    for (const struct json *member = object->first; member != NULL; member = member->next)
        if (strcmp(member->key, key) == 0)
            found = member;
    return found;
}

static bool read_steps(struct reader *r, const struct json *list, struct metric *metric)
{
    size_t length = enter(r, ".steps");
    if (list->kind != JSON_ARRAY || list->count == 0)
        return fail(r, "expected a list of [seconds, value]");
    struct step *steps = arena_take(r->arena, list->count * sizeof *steps);
    if (steps == NULL)
        return fail(r, "out of memory");
    size_t i = 0;
    for (const struct json *pair = list->first; pair != NULL; pair = pair->next, i++) {
        const struct json *from = pair->kind == JSON_ARRAY && pair->count == 2 ? pair->first : NULL;
        if (from == NULL || from->kind != JSON_NUMBER ||
            (from->next->kind != JSON_NUMBER && from->next->kind != JSON_NULL))
            return fail(r, "[%zu] is not [seconds, value or null]", i);
        if (i > 0 && from->number < steps[i - 1].from)
            return fail(r, "[%zu] is earlier than the step before it", i);
        steps[i] = (struct step){from->number, from->next->number, from->next->kind == JSON_NUMBER};
    }
    metric->steps = steps;
    metric->count = list->count;
    leave(r, length);
    return true;
}

static bool read_parts(struct reader *r, const struct json *list, struct metric *metric)
{
    size_t length = enter(r, ".parts");
    if (list->kind != JSON_ARRAY || list->count == 0)
        return fail(r, "expected a list of numbers and waveforms");
    struct metric *parts = arena_take(r->arena, list->count * sizeof *parts);
    if (parts == NULL)
        return fail(r, "out of memory");
    size_t i = 0;
    for (const struct json *part = list->first; part != NULL; part = part->next, i++) {
        size_t item = enter(r, "[%zu]", i);
        if (!read_metric(r, part, &parts[i]))
            return false;
        leave(r, item);
    }
    metric->parts = parts;
    metric->count = list->count;
    leave(r, length);
    return true;
}

static bool read_wave(struct reader *r, const struct json *object, struct metric *metric)
{
    const struct json *name = member_of(object, "wave");
    const struct wave *wave = NULL;
    for (size_t i = 0; name != NULL && name->kind == JSON_STRING && i < LENGTH(waves); i++)
        if (strcmp(waves[i].name, name->text) == 0)
            wave = &waves[i];
    if (wave == NULL)
        return fail(r, "\"wave\" must be sine, square, noise, ramp, steps or sum");
    *metric = (struct metric){.kind = wave->kind, .period = 1, .duty = 0.5,
                              .minimum = -HUGE_VAL, .maximum = HUGE_VAL};
    if (!read_object(r, object, wave->fields, wave->count, metric))
        return false;
    if (metric->period < 1e-6 || (metric->repeat != 0 && metric->repeat < 1e-6))
        return fail(r, "\"period\" and \"repeat\" must be at least 1e-6");
    if (wave->kind == WAVE_STEPS)
        return read_steps(r, member_of(object, "steps"), metric);
    if (wave->kind == WAVE_SUM)
        return read_parts(r, member_of(object, "parts"), metric);
    const struct json *seed = member_of(object, "seed");
    if (seed != NULL) {
        if (seed->kind != JSON_NUMBER || seed->number < 0 || seed->number != floor(seed->number) ||
            seed->number > 9007199254740992.0)
            return fail(r, "\"seed\" must be a whole number from 0 to 2^53");
        metric->seed = (uint64_t)seed->number;
    }
    return true;
}

static bool read_metric(struct reader *r, const struct json *value, struct metric *metric)
{
    switch (value->kind) {
    case JSON_NULL:
        *metric = (struct metric){.kind = WAVE_NOT_SUPPORTED};
        return true;
    case JSON_NUMBER:
        *metric = (struct metric){.kind = WAVE_CONSTANT, .constant = value->number};
        return true;
    case JSON_OBJECT:
        return read_wave(r, value, metric);
    default:
        return fail(r, "expected a number, a waveform or null");
    }
}

/* --- processes and slices ------------------------------------------------------------------------- */

static void process_defaults(void *item)
{
    struct process *process = item;
    process->type = "compute";
    process->gpu_instance = process->compute_instance = NAN;
    process->from = -HUGE_VAL;
    process->until = HUGE_VAL;
}

static bool process_check(struct reader *r, void *item)
{
    struct process *process = item;
    process->compute = strstr(process->type, "compute") != NULL;
    process->graphics = strstr(process->type, "graphics") != NULL;
    if (strcmp(process->type, "compute") != 0 && strcmp(process->type, "graphics") != 0 &&
        strcmp(process->type, "compute+graphics") != 0)
        return fail(r, "\"type\" must be compute, graphics or compute+graphics");
    if (!(process->pid >= 1 && process->pid <= 4294967294.0))
        return fail(r, "\"pid\" must be from 1 to 2^32-2");
    return true;
}

static const struct field process_fields[] = {
    REQUIRED_KEY(process, pid, WHOLE), PLAIN_KEY(process, type, TEXT), KEY(process, memory_used_bytes, METRIC),
    KEY(process, sm_percent, METRIC), KEY(process, memory_percent, METRIC),
    KEY(process, encoder_percent, METRIC), KEY(process, decoder_percent, METRIC),
    KEY(process, gpu_instance, WHOLE), KEY(process, compute_instance, WHOLE),
    KEY(process, from, SECONDS), KEY(process, until, SECONDS),
    UNREAD_KEY("user"), UNREAD_KEY("command"), UNREAD_KEY("started_at"), UNREAD_KEY("age_seconds"),
    UNREAD_KEY("host_cpu_percent"), UNREAD_KEY("host_memory_bytes"), UNREAD_KEY("container"),
    UNREAD_KEY("job"),
};
static const struct list_kind process_list_kind = {sizeof(struct process), 4096, process_fields,
    LENGTH(process_fields), process_defaults, process_check};
#define PROCESSES(struct_) {.key = "processes", .kind = LIST, .list = &process_list_kind, \
    .offset = offsetof(struct struct_, processes.items), .count_offset = offsetof(struct struct_, processes.count)}

static bool slice_check(struct reader *r, void *item)
{
    struct mig_slice *slice = item;
    unsigned int memory = 0;
    if (sscanf(slice->profile, "%uc.%ug.%ugb", &slice->compute_slices, &slice->gpu_slices, &memory) != 3) {
        if (sscanf(slice->profile, "%ug.%ugb", &slice->gpu_slices, &memory) != 2)
            return fail(r, "\"profile\" must look like 1g.10gb or 1c.2g.20gb");
        slice->compute_slices = slice->gpu_slices;
    }
    return true;
}

static const struct field slice_fields[] = {
    REQUIRED_KEY(mig_slice, uuid, TEXT), REQUIRED_KEY(mig_slice, profile, TEXT),
    REQUIRED_KEY(mig_slice, gpu_instance, WHOLE), REQUIRED_KEY(mig_slice, compute_instance, WHOLE),
    KEY(mig_slice, memory_total_bytes, METRIC), KEY(mig_slice, memory_reserved_bytes, METRIC),
    KEY(mig_slice, memory_used_bytes, METRIC), KEY(mig_slice, bar1_total_bytes, METRIC),
    KEY(mig_slice, bar1_used_bytes, METRIC), PROCESSES(mig_slice),
};
static const struct list_kind slice_list_kind = {sizeof(struct mig_slice), MAX_SLICES, slice_fields,
    LENGTH(slice_fields), NULL, slice_check};

/* --- GPUs ----------------------------------------------------------------------------------------- */

struct code { const char *name; unsigned int code; };
static const struct code brands[] = {{"unknown", 0}, {"quadro", 1}, {"tesla", 2}, {"nvs", 3}, {"grid", 4},
    {"geforce", 5}, {"titan", 6}, {"quadro_rtx", 12}, {"nvidia_rtx", 13}, {"nvidia", 14}, {"geforce_rtx", 15},
    {"titan_rtx", 16}, {NULL, 0}};
static const struct code architectures[] = {{"kepler", 2}, {"maxwell", 3}, {"pascal", 4}, {"volta", 5},
    {"turing", 6}, {"ampere", 7}, {"ada", 8}, {"hopper", 9}, {"blackwell", 10}, {NULL, 0}};
static const struct code compute_modes[] = {{"default", 0}, {"prohibited", 2}, {"exclusive_process", 3}, {NULL, 0}};

static bool code_of(struct reader *r, const char *key, const char *name, const struct code *codes, unsigned int *code)
{
    for (; name != NULL && codes->name != NULL; codes++)
        if (strcmp(codes->name, name) == 0)
            return *code = codes->code, true;
    return name == NULL ? true : fail(r, "\"%s\" has an unknown value", key);
}

static void gpu_defaults(void *item)
{
    struct gpu *gpu = item;
    gpu->pci_device_id = gpu->pci_subsystem_id = gpu->minor_number = gpu->mig_slices_max = NAN;
}

static bool gpu_check(struct reader *r, void *item)
{
    struct gpu *gpu = item;
    if (gpu->compute_capability != NULL &&
        sscanf(gpu->compute_capability, "%u.%u", &gpu->compute_major, &gpu->compute_minor) != 2)
        return fail(r, "\"compute_capability\" must look like 8.0");
    if (gpu->pci_bus_id != NULL && sscanf(gpu->pci_bus_id, "%x:%x:%x.%x", &gpu->pci_domain, &gpu->pci_bus,
                                          &gpu->pci_device, &gpu->pci_function) != 4)
        return fail(r, "\"pci_bus_id\" must look like 00000000:07:00.0");
    return code_of(r, "brand", gpu->brand, brands, &gpu->brand_code) &&
           code_of(r, "architecture", gpu->architecture, architectures, &gpu->architecture_code) &&
           code_of(r, "compute_mode", gpu->compute_mode, compute_modes, &gpu->compute_mode_code);
}

#define G(member, kind) KEY(gpu, member, kind)
static const struct field gpu_fields[] = {
    REQUIRED_KEY(gpu, uuid, TEXT), REQUIRED_KEY(gpu, name, TEXT), G(serial, TEXT), G(vbios_version, TEXT),
    G(brand, TEXT), G(architecture, TEXT), G(compute_capability, TEXT), G(compute_mode, TEXT),
    G(pci_bus_id, TEXT), G(pci_device_id, WHOLE), G(pci_subsystem_id, WHOLE), G(minor_number, WHOLE),
    G(persistence_mode, TRISTATE), G(display_active, TRISTATE), G(display_mode, TRISTATE),
    G(ecc_mode, TRISTATE), G(mig_mode, TRISTATE), G(mig_slices_max, WHOLE),
    G(memory_total_bytes, METRIC), G(memory_reserved_bytes, METRIC), G(memory_used_bytes, METRIC),
    G(bar1_total_bytes, METRIC), G(bar1_used_bytes, METRIC),
    G(utilization_gpu_percent, METRIC), G(utilization_memory_percent, METRIC),
    G(utilization_encoder_percent, METRIC), G(utilization_decoder_percent, METRIC),
    G(temperature_celsius, METRIC), G(temperature_memory_celsius, METRIC),
    G(temperature_slowdown_celsius, METRIC), G(temperature_shutdown_celsius, METRIC),
    G(power_watts, METRIC), G(power_limit_watts, METRIC), G(power_limit_default_watts, METRIC),
    G(power_limit_min_watts, METRIC), G(power_limit_max_watts, METRIC), G(energy_joules, METRIC),
    G(fan_percent, METRIC),
    G(clock_graphics_mhz, METRIC), G(clock_sm_mhz, METRIC), G(clock_memory_mhz, METRIC), G(clock_video_mhz, METRIC),
    G(clock_graphics_max_mhz, METRIC), G(clock_sm_max_mhz, METRIC), G(clock_memory_max_mhz, METRIC),
    G(clock_video_max_mhz, METRIC), G(performance_state, METRIC), G(throttle_reasons, METRIC),
    G(ecc_corrected_volatile, METRIC), G(ecc_uncorrected_volatile, METRIC),
    G(ecc_corrected_aggregate, METRIC), G(ecc_uncorrected_aggregate, METRIC),
    G(remapped_rows_corrected, METRIC), G(remapped_rows_uncorrected, METRIC),
    G(remapped_rows_pending, TRISTATE), G(remapped_rows_failed, TRISTATE),
    G(retired_pages_pending, TRISTATE), G(recovery_action, METRIC),
    G(pcie_tx_bytes_per_second, METRIC), G(pcie_rx_bytes_per_second, METRIC), G(pcie_replay_count, METRIC),
    G(pcie_link_generation, METRIC), G(pcie_link_width, METRIC),
    G(pcie_link_generation_max, METRIC), G(pcie_link_width_max, METRIC),
    PROCESSES(gpu),
    {.key = "mig_slices", .kind = LIST, .list = &slice_list_kind, .offset = offsetof(struct gpu, mig_slices),
     .count_offset = offsetof(struct gpu, mig_slice_count)},
};
static const struct list_kind gpu_list_kind = {sizeof(struct gpu), MAX_GPUS, gpu_fields, LENGTH(gpu_fields),
    gpu_defaults, gpu_check};

/* --- faults, latencies, Xids, the whole ----------------------------------------------------------- */

static void fault_defaults(void *item)
{
    *(struct fault *)item = (struct fault){.gpu = NAN, .from = -HUGE_VAL, .until = HUGE_VAL};
}
static bool fault_check(struct reader *r, void *item)
{
    return ((struct fault *)item)->gpu >= MAX_GPUS ? fail(r, "\"gpu\" must be below %d", MAX_GPUS) : true;
}
static const struct field fault_fields[] = {
    REQUIRED_KEY(fault, function, TEXT), KEY(fault, gpu, WHOLE), KEY(fault, from, SECONDS),
    KEY(fault, until, SECONDS), {.key = "effect", .kind = EFFECT, .required = true}};
static const struct list_kind fault_list_kind = {sizeof(struct fault), 1024, fault_fields, LENGTH(fault_fields),
    fault_defaults, fault_check};

static void latency_defaults(void *item)
{
    ((struct latency *)item)->gpu = NAN;
}
static bool latency_check(struct reader *r, void *item)
{
    const struct latency *latency = item;
    if (latency->gpu >= MAX_GPUS)
        return fail(r, "\"gpu\" must be below %d", MAX_GPUS);
    return latency->seconds >= 0 && latency->seconds <= 3600 ? true : fail(r, "\"seconds\" must be from 0 to 3600");
}
static const struct field latency_fields[] = {
    REQUIRED_KEY(latency, function, TEXT), KEY(latency, gpu, WHOLE), REQUIRED_KEY(latency, seconds, NUMBER)};
static const struct list_kind latency_list_kind = {sizeof(struct latency), 1024, latency_fields,
    LENGTH(latency_fields), latency_defaults, latency_check};

static bool xid_check(struct reader *r, void *item)
{
    return ((struct xid *)item)->gpu >= MAX_GPUS ? fail(r, "\"gpu\" must be below %d", MAX_GPUS) : true;
}
static const struct field xid_fields[] = {
    REQUIRED_KEY(xid, gpu, WHOLE), REQUIRED_KEY(xid, at, SECONDS), REQUIRED_KEY(xid, xid, WHOLE)};
static const struct list_kind xid_list_kind = {sizeof(struct xid), 65536, xid_fields,
    LENGTH(xid_fields), NULL, xid_check};

#define TOP_LIST(key_, items, count, kind_) {.key = key_, .kind = LIST, .list = &kind_, \
    .offset = offsetof(struct scenario, items), .count_offset = offsetof(struct scenario, count)}
static const struct field scenario_fields[] = {
    UNREAD_KEY("description"), UNREAD_KEY("host"),
    REQUIRED_KEY(scenario, driver_version, TEXT), KEY(scenario, cuda_version, TEXT),
    KEY(scenario, nvml_version, TEXT), KEY(scenario, epoch, SECONDS), KEY(scenario, frozen_time, SECONDS),
    TOP_LIST("gpus", gpus, gpu_count, gpu_list_kind), TOP_LIST("faults", faults, fault_count, fault_list_kind),
    TOP_LIST("latencies", latencies, latency_count, latency_list_kind),
    TOP_LIST("xids", xids, xid_count, xid_list_kind),
};

struct scenario *scenario_parse(const char *text, size_t length, char *error, size_t error_size)
{
    struct arena arena = {NULL};
    struct json *root = json_parse(&arena, text, length, error, error_size);
    struct scenario *scenario = root != NULL ? calloc(1, sizeof *scenario) : NULL;
    struct reader reader = {.arena = &arena, .error = error, .error_size = error_size};
    if (scenario != NULL) {
        scenario->epoch = scenario->frozen_time = NAN;
        if (!read_object(&reader, root, scenario_fields, LENGTH(scenario_fields), scenario)) {
            free(scenario);
            scenario = NULL;
        }
    }
    if (scenario == NULL)
        arena_free(&arena);
    else
        scenario->arena = arena;
    return scenario;
}

void scenario_free(struct scenario *scenario)
{
    if (scenario == NULL)
        return;
    arena_free(&scenario->arena);
    free(scenario);
}
