#include "arena.h"

#include <stdlib.h>

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    max_align_t memory[];
};

enum { BLOCK_BYTES = 64 * 1024 };

void *arena_take(struct arena *arena, size_t bytes)
{
    const size_t alignment = _Alignof(max_align_t);
    bytes = (bytes + alignment - 1) / alignment * alignment;
    struct arena_block *block = arena->blocks;
    if (block == NULL || block->size - block->used < bytes) {
        size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block = calloc(1, sizeof *block + size);
        if (block == NULL)
            return NULL;
        block->size = size;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    void *memory = (char *)block->memory + block->used;
    block->used += bytes;
    return memory;
}

void arena_free(struct arena *arena)
{
    while (arena->blocks != NULL) {
        struct arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
}
