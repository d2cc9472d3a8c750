#define _GNU_SOURCE
#include "runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SCENARIO_BYTES = 16 * 1024 * 1024, MAX_HANDLES = 4096 };
static const double RECHECK_SECONDS = 0.05; /* how often a call looks whether the file has changed */
static const double HANG_POLL_SECONDS = 0.02;
static const uintptr_t HANDLE_TAG = (uintptr_t)0x6770 << 32; /* tells our handles from stray pointers */

static const char *const function_names[FUNCTION_COUNT] = {
#define X(name) #name,
    SIM_FUNCTIONS(X)
#undef X
};

/* Everything below is guarded by `lock`, the one global lock: real NVML has one too, and a hang with the lock
 * held must stop all other calls. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct scenario *scenario;      /* the last good one */
static bool file_is_good;              /* does the file as it is now make a scenario? */
static bool file_is_missing;           /* and has been complained about */
static nvmlReturn_t file_error = NVML_ERROR_DRIVER_NOT_LOADED;
static struct stat file_seen;
static double next_check;
static unsigned int init_count;
static double start_monotonic;
static bool touched[FUNCTION_COUNT];   /* does any fault or latency name this function? */

/* A handle stays with its UUID while scenarios come and go, as a real handle stays with its card. */
static struct { char *uuid; short gpu, slice; } handles[MAX_HANDLES];
static unsigned int handle_count;

static double clock_seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

uint64_t wall_clock_microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

__attribute__((constructor)) static void remember_start(void)
{
    start_monotonic = clock_seconds(CLOCK_MONOTONIC);
}

/* --- the scenario file ---------------------------------------------------------------------------- */

static unsigned int handle_for(const char *uuid, int gpu, int slice)
{
    unsigned int handle = 0;
    while (handle < handle_count && strcmp(handles[handle].uuid, uuid) != 0)
        handle++;
    if (handle == handle_count) {
        char *copy = handle_count < MAX_HANDLES ? strdup(uuid) : NULL;
        if (copy == NULL)
            return MAX_HANDLES; /* resolves to nothing */
        handles[handle_count++].uuid = copy;
    }
    handles[handle].gpu = (short)gpu;
    handles[handle].slice = (short)slice;
    return handle;
}

static void adopt(struct scenario *fresh)
{
    for (unsigned int i = 0; i < handle_count; i++)
        handles[i].gpu = -1; /* gone, unless found again below */
    for (size_t g = 0; g < fresh->gpu_count; g++) {
        struct gpu *gpu = (struct gpu *)&fresh->gpus[g];
        gpu->handle = handle_for(gpu->uuid, (int)g, -1);
        for (size_t s = 0; s < gpu->mig_slice_count; s++) {
            struct mig_slice *slice = (struct mig_slice *)&gpu->mig_slices[s];
            slice->handle = handle_for(slice->uuid, (int)g, (int)s);
        }
    }
    for (int function = 0; function < FUNCTION_COUNT; function++) {
        touched[function] = false;
        for (size_t i = 0; i < fresh->fault_count; i++)
            touched[function] |= fnmatch(fresh->faults[i].function, function_names[function], 0) == 0;
        for (size_t i = 0; i < fresh->latency_count; i++)
            touched[function] |= fnmatch(fresh->latencies[i].function, function_names[function], 0) == 0;
    }
    scenario_free(scenario);
    scenario = fresh;
}

static char *read_whole(int file, size_t size)
{
    char *text = malloc(size + 1);
    size_t done = 0;
    while (text != NULL && done < size) {
        ssize_t got = read(file, text + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            free(text);
            return NULL;
        }
        done += (size_t)got;
    }
    return text;
}

/* Reads the file when it is not the one seen last. A bad file leaves the last good scenario in force. */
static void refresh(bool now)
{
    double monotonic = clock_seconds(CLOCK_MONOTONIC_COARSE);
    if (!now && monotonic < next_check)
        return;
    next_check = monotonic + RECHECK_SECONDS;
    const char *path = getenv("GPUHERD_SIM_SCENARIO");
    int file = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    struct stat found;
    char error[256] = "cannot be read";
    if (file < 0 || fstat(file, &found) != 0) {
        if (!file_is_missing)
            fprintf(stderr, "gpuherd sim: GPUHERD_SIM_SCENARIO=%s: %s\n", path != NULL ? path : "", strerror(errno));
        file_is_good = false;
        file_error = NVML_ERROR_DRIVER_NOT_LOADED;
        file_seen = (struct stat){.st_ino = 0};
        file_is_missing = true;
        if (file >= 0)
            close(file);
        return;
    }
    if (found.st_ino == file_seen.st_ino && found.st_dev == file_seen.st_dev && found.st_size == file_seen.st_size &&
        found.st_mtim.tv_sec == file_seen.st_mtim.tv_sec && found.st_mtim.tv_nsec == file_seen.st_mtim.tv_nsec) {
        close(file);
        return;
    }
    file_seen = found;
    file_is_missing = false;
    char *text = found.st_size <= MAX_SCENARIO_BYTES ? read_whole(file, (size_t)found.st_size) : NULL;
    close(file);
    struct scenario *fresh = text != NULL ? scenario_parse(text, (size_t)found.st_size, error, sizeof error) : NULL;
    free(text);
    file_is_good = fresh != NULL;
    if (fresh != NULL) {
        adopt(fresh);
    } else {
        file_error = NVML_ERROR_UNKNOWN;
        fprintf(stderr, "gpuherd sim: %s: %s\n", path, error);
    }
}

static double scenario_time(void)
{
    if (scenario == NULL)
        return 0;
    if (!isnan(scenario->frozen_time))
        return scenario->frozen_time;
    if (!isnan(scenario->epoch))
        return clock_seconds(CLOCK_REALTIME_COARSE) - scenario->epoch;
    return clock_seconds(CLOCK_MONOTONIC_COARSE) - start_monotonic;
}

/* --- latency and faults --------------------------------------------------------------------------- */

static void sleep_seconds(double seconds)
{
    struct timespec rest = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        ;
}

/* `gpu` is -1 for calls that name no GPU; an entry with a GPU does not concern them. */
static bool concerns(const char *pattern, double entry_gpu, enum function function, int gpu)
{
    return (isnan(entry_gpu) || (gpu >= 0 && entry_gpu == gpu)) && fnmatch(pattern, function_names[function], 0) == 0;
}

static double latency_of(enum function function, int gpu)
{
    double seconds = 0;
    for (size_t i = 0; scenario != NULL && i < scenario->latency_count; i++) {
        const struct latency *entry = &scenario->latencies[i];
        if (concerns(entry->function, entry->gpu, function, gpu))
            seconds += entry->seconds;
    }
    return seconds;
}

static const struct fault *fault_of(enum function function, int gpu)
{
    double t = scenario_time();
    for (size_t i = 0; scenario != NULL && i < scenario->fault_count; i++) {
        const struct fault *entry = &scenario->faults[i];
        if (concerns(entry->function, entry->gpu, function, gpu) && entry->from <= t && t < entry->until)
            return entry;
    }
    return NULL;
}

static nvmlReturn_t suffer(enum function function, int gpu)
{
    if (!touched[function])
        return NVML_SUCCESS;
    double latency = latency_of(function, gpu);
    if (latency > 0) {
        pthread_mutex_unlock(&lock);
        sleep_seconds(latency);
        pthread_mutex_lock(&lock);
    }
    const struct fault *fault;
    while ((fault = fault_of(function, gpu)) != NULL) {
        switch (fault->effect) {
        case EFFECT_ERROR:
            return fault->error;
        case EFFECT_CRASH:
            *(volatile int *)(uintptr_t)0 = 0;
            abort();
        case EFFECT_HANG:
            pthread_mutex_unlock(&lock);
            sleep_seconds(HANG_POLL_SECONDS);
            pthread_mutex_lock(&lock);
            break;
        case EFFECT_HANG_LOCKED:
            sleep_seconds(HANG_POLL_SECONDS);
            break;
        }
        refresh(false); /* a hang ends with its time window or with a new scenario */
    }
    return NVML_SUCCESS;
}

/* --- the frame around every call ------------------------------------------------------------------ */

nvmlReturn_t finish(nvmlReturn_t result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

void pause_unlocked(struct call *call, double seconds)
{
    pthread_mutex_unlock(&lock);
    sleep_seconds(seconds);
    pthread_mutex_lock(&lock);
    refresh(false);
    call->scenario = scenario;
    call->t = scenario_time();
}

static void fill(struct call *call)
{
    *call = (struct call){.scenario = scenario, .t = scenario_time()};
}

nvmlReturn_t begin_init(enum function function)
{
    pthread_mutex_lock(&lock);
    refresh(true);
    nvmlReturn_t result = suffer(function, -1);
    if (result == NVML_SUCCESS && !file_is_good)
        result = file_error;
    if (result == NVML_SUCCESS)
        init_count++;
    return finish(result);
}

nvmlReturn_t begin_shutdown(void)
{
    pthread_mutex_lock(&lock);
    refresh(false);
    nvmlReturn_t result = init_count == 0 ? NVML_ERROR_UNINITIALIZED : suffer(FN_nvmlShutdown, -1);
    if (result == NVML_SUCCESS)
        init_count--;
    return finish(result);
}

static nvmlReturn_t begin(enum function function, int gpu)
{
    refresh(false);
    return init_count == 0 ? NVML_ERROR_UNINITIALIZED : suffer(function, gpu);
}

nvmlReturn_t begin_system(struct call *call, enum function function)
{
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = begin(function, -1);
    if (result != NVML_SUCCESS)
        return finish(result);
    fill(call);
    return NVML_SUCCESS;
}

nvmlReturn_t begin_search(struct call *call)
{
    pthread_mutex_lock(&lock);
    refresh(false);
    if (init_count == 0)
        return finish(NVML_ERROR_UNINITIALIZED);
    fill(call);
    return NVML_SUCCESS;
}

nvmlReturn_t begin_index(struct call *call, enum function function, unsigned int index)
{
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = begin(function, index > INT_MAX ? -1 : (int)index);
    if (result == NVML_SUCCESS && index >= scenario->gpu_count)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result != NVML_SUCCESS)
        return finish(result);
    fill(call);
    call->gpu = &scenario->gpus[index];
    call->gpu_index = index;
    return NVML_SUCCESS;
}

nvmlDevice_t device_of(unsigned int handle)
{
    return (nvmlDevice_t)(HANDLE_TAG | handle);
}

nvmlReturn_t begin_device(struct call *call, enum function function, nvmlDevice_t device)
{
    uintptr_t handle = (uintptr_t)device ^ HANDLE_TAG;
    pthread_mutex_lock(&lock);
    bool known = handle < handle_count;
    nvmlReturn_t result = begin(function, known ? handles[handle].gpu : -1);
    if (result == NVML_SUCCESS && !known)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS && handles[handle].gpu < 0)
        result = NVML_ERROR_GPU_IS_LOST; /* the card was in an earlier scenario */
    if (result != NVML_SUCCESS)
        return finish(result);
    fill(call);
    call->gpu_index = (unsigned int)handles[handle].gpu;
    call->gpu = &scenario->gpus[call->gpu_index];
    call->slice = handles[handle].slice < 0 ? NULL : &call->gpu->mig_slices[handles[handle].slice];
    return NVML_SUCCESS;
}

nvmlReturn_t begin_whole_gpu(struct call *call, enum function function, nvmlDevice_t device)
{
    nvmlReturn_t result = begin_device(call, function, device);
    return result == NVML_SUCCESS && call->slice != NULL ? finish(NVML_ERROR_NOT_SUPPORTED) : result;
}

/* --- answers -------------------------------------------------------------------------------------- */

nvmlReturn_t read_u64(const struct call *call, const struct metric *metric, double scale, uint64_t *value)
{
    double now;
    if (!metric_value(metric, call->t, &now))
        return NVML_ERROR_NOT_SUPPORTED;
    *value = metric_quantised(now * scale, 1ull << 63);
    return NVML_SUCCESS;
}

nvmlReturn_t read_u32(const struct call *call, const struct metric *metric, double scale, unsigned int *value)
{
    double now;
    if (!metric_value(metric, call->t, &now))
        return NVML_ERROR_NOT_SUPPORTED;
    *value = (unsigned int)metric_quantised(now * scale, UINT_MAX - 1);
    return NVML_SUCCESS;
}

nvmlReturn_t copy_text(const char *text, char *buffer, unsigned int length)
{
    if (text == NULL)
        return NVML_ERROR_NOT_SUPPORTED;
    if (buffer == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    size_t needed = strlen(text) + 1;
    if (length < needed)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(buffer, text, needed);
    return NVML_SUCCESS;
}
