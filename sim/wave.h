/* What a metric is worth at a moment: nothing (not supported), a constant, or a waveform.
 *
 * src/gpuherd/collect/scenario/waves.py evaluates the same formulas; the parity test compares the two. */
#ifndef GPUHERD_SIM_WAVE_H
#define GPUHERD_SIM_WAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wave_kind {
    WAVE_NOT_SUPPORTED, /* must be 0: an absent key is a zeroed metric */
    WAVE_CONSTANT,
    WAVE_SINE,
    WAVE_SQUARE,
    WAVE_NOISE,
    WAVE_RAMP,
    WAVE_STEPS,
    WAVE_SUM,
};

struct step { double from, value; bool supported; };

struct metric {
    enum wave_kind kind;
    double constant;
    double mean, amplitude, period, phase; /* sine, noise (period = seconds between two random values) */
    double low, high, duty;                /* square */
    double start, per_second;              /* ramp */
    double minimum, maximum;               /* every waveform: clamped to these */
    uint64_t seed;                         /* noise */
    double repeat;                         /* steps: start over after so many seconds; 0 = never */
    const struct step *steps;
    const struct metric *parts;            /* sum */
    size_t count;                          /* of steps or parts */
};

/* False when the metric is not supported at `t` (seconds of scenario time). */
bool metric_value(const struct metric *metric, double t, double *value);

/* Rounded half up and clamped to [0, limit]: NVML counts in unsigned integers. */
uint64_t metric_quantised(double value, uint64_t limit);

#endif
