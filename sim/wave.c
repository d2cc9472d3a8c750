#include "wave.h"

#include <math.h>

static double fraction(double x)
{
    return x - floor(x);
}

/* splitmix64: a number in [0, 1) that depends only on the seed and the step. */
static double random_at(uint64_t seed, int64_t step)
{
    uint64_t z = seed * 0x9E3779B97F4A7C15ull + (uint64_t)step * 0xD1342543DE82EF95ull + 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1.0p-53;
}

static double noise(const struct metric *m, double t)
{
    double position = t / m->period;
    double base = floor(position);
    double here = random_at(m->seed, (int64_t)base), next = random_at(m->seed, (int64_t)base + 1);
    return m->mean + m->amplitude * (2.0 * (here + (next - here) * (position - base)) - 1.0);
}

static bool step_value(const struct metric *m, double t, double *value)
{
    if (m->repeat > 0)
        t = fraction(t / m->repeat) * m->repeat;
    const struct step *current = &m->steps[0];
    for (size_t i = 1; i < m->count && m->steps[i].from <= t; i++)
        current = &m->steps[i];
    *value = current->value;
    return current->supported;
}

bool metric_value(const struct metric *m, double t, double *value)
{
    double v = 0;
    switch (m->kind) {
    case WAVE_NOT_SUPPORTED:
        return false;
    case WAVE_CONSTANT:
        *value = m->constant;
        return true;
    case WAVE_SINE:
        v = m->mean + m->amplitude * sin(2.0 * M_PI * (t / m->period + m->phase));
        break;
    case WAVE_SQUARE:
        v = fraction(t / m->period + m->phase) < m->duty ? m->high : m->low;
        break;
    case WAVE_NOISE:
        v = noise(m, t);
        break;
    case WAVE_RAMP:
        v = m->start + m->per_second * t;
        break;
    case WAVE_STEPS:
        if (!step_value(m, t, &v))
            return false;
        break;
    case WAVE_SUM:
        for (size_t i = 0; i < m->count; i++) {
            double part;
            if (!metric_value(&m->parts[i], t, &part))
                return false;
            v += part;
        }
        break;
    }
    *value = v < m->minimum ? m->minimum : v > m->maximum ? m->maximum : v;
    return true;
}

uint64_t metric_quantised(double value, uint64_t limit)
{
    double rounded = floor(value + 0.5);
    if (!(rounded > 0))
        return 0;
    return rounded >= (double)limit ? limit : (uint64_t)rounded;
}
