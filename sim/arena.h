/* Memory that is released all at once: everything parsed from one scenario file lives and dies together. */
#ifndef GPUHERD_SIM_ARENA_H
#define GPUHERD_SIM_ARENA_H

#include <stddef.h>

struct arena { struct arena_block *blocks; };

/* Zeroed memory, or NULL when the system has none left. */
void *arena_take(struct arena *arena, size_t bytes);
void arena_free(struct arena *arena);

#endif
