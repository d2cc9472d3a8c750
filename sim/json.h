/* A small strict JSON reader (RFC 8259): text to a tree in an arena. */
#ifndef GPUHERD_SIM_JSON_H
#define GPUHERD_SIM_JSON_H

#include <stddef.h>

#include "arena.h"

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_kind kind;
    double number;            /* JSON_NUMBER */
    const char *text;         /* JSON_STRING: UTF-8, NUL-terminated, without embedded NULs */
    const char *key;          /* member of an object: its name */
    struct json *first, *next; /* members or elements, in the order of the file */
    size_t count;             /* of members or elements */
};

/* The tree, or NULL with a message ("line 3: expected ...") in `error`. */
struct json *json_parse(struct arena *arena, const char *text, size_t length, char *error, size_t error_size);

#endif
