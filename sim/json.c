#define _GNU_SOURCE
#include "json.h"

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 32 };

struct parser {
    struct arena *arena;
    const char *at, *end, *start;
    char *error;
    size_t error_size;
    locale_t c_locale;
};

static void *fail(struct parser *p, const char *what)
{
    if (p->error[0] == '\0') { /* the first error is the cause; later ones are its echo */
        int line = 1;
        for (const char *c = p->start; c < p->at; c++)
            line += *c == '\n';
        snprintf(p->error, p->error_size, "line %d: %s", line, what);
    }
    return NULL;
}

static void skip_space(struct parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

static bool accept(struct parser *p, char wanted)
{
    skip_space(p);
    if (p->at == p->end || *p->at != wanted)
        return false;
    p->at++;
    return true;
}

static bool accept_word(struct parser *p, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

static int hex4(struct parser *p)
{
    int value = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        if (p->at == p->end)
            return -1;
        char c = *p->at;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static char *put_utf8(char *out, unsigned int code)
{
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xC0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *out++ = (char)(0xE0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
        *out++ = (char)(0x80 | (code & 0x3F));
    } else {
        *out++ = (char)(0xF0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3F));
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
        *out++ = (char)(0x80 | (code & 0x3F));
    }
    return out;
}

/* The code point of \uXXXX (and its second half), or -1. */
static int escaped_code_point(struct parser *p)
{
    int code = hex4(p);
    if (code >= 0xD800 && code < 0xDC00) {
        if (!accept_word(p, "\\u"))
            return -1;
        int low = hex4(p);
        if (low < 0xDC00 || low > 0xDFFF)
            return -1;
        return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    return code >= 0xDC00 && code <= 0xDFFF ? -1 : code;
}

/* The string whose opening quote was just read. */
static const char *parse_string(struct parser *p)
{
    const char *close = p->at;
    while (close < p->end && *close != '"')
        close += *close == '\\' && close + 1 < p->end ? 2 : 1;
    if (close >= p->end)
        return fail(p, "string without a closing quote");
    /* Unescaping never lengthens a string. */
    char *text = arena_take(p->arena, (size_t)(close - p->at) + 1);
    if (text == NULL)
        return fail(p, "out of memory");
    char *out = text;
    while (*p->at != '"') {
        unsigned char c = (unsigned char)*p->at++;
        if (c < 0x20)
            return fail(p, "control character in a string");
        if (c != '\\') {
            *out++ = (char)c;
            continue;
        }
        char escape = *p->at++;
        const char *from = "\"\\/bfnrt", *to = "\"\\/\b\f\n\r\t", *found = strchr(from, escape);
        if (found != NULL && escape != '\0') {
            *out++ = to[found - from];
        } else if (escape == 'u') {
            int code = escaped_code_point(p);
            if (code <= 0)
                return fail(p, "bad \\u escape in a string");
            out = put_utf8(out, (unsigned int)code);
        } else {
            return fail(p, "unknown escape in a string");
        }
    }
    p->at++;
    return text;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

static struct json *parse_number(struct parser *p, struct json *node)
{
    const char *at = p->at;
    if (at < p->end && *at == '-')
        at++;
    const char *digits = at;
    at = skip_digits(at, p->end);
    if (at == digits || (*digits == '0' && at - digits > 1))
        return fail(p, "expected a value");
    if (at < p->end && *at == '.') {
        const char *fraction = ++at;
        at = skip_digits(at, p->end);
        if (at == fraction)
            return fail(p, "number without digits after its point");
    }
    if (at < p->end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < p->end && (*at == '+' || *at == '-'))
            at++;
        const char *exponent = at;
        at = skip_digits(at, p->end);
        if (at == exponent)
            return fail(p, "number without digits in its exponent");
    }
    char copy[64];
    size_t length = (size_t)(at - p->at);
    if (length >= sizeof copy)
        return fail(p, "number with too many digits");
    memcpy(copy, p->at, length);
    copy[length] = '\0';
    /* The host program may have set a locale with a decimal comma. */
    node->number = strtod_l(copy, NULL, p->c_locale);
    if (node->number > 1e18 || node->number < -1e18)
        return fail(p, "number out of range");
    node->kind = JSON_NUMBER;
    p->at = at;
    return node;
}

static struct json *parse_value(struct parser *p, int depth);

/* The members or elements up to `close`; the opening bracket was just read. */
static struct json *parse_children(struct parser *p, struct json *node, char close, int depth)
{
    node->kind = close == '}' ? JSON_OBJECT : JSON_ARRAY;
    if (accept(p, close))
        return node;
    struct json **tail = &node->first;
    do {
        const char *key = NULL;
        if (close == '}') {
            if (!accept(p, '"'))
                return fail(p, "expected a quoted key");
            if ((key = parse_string(p)) == NULL)
                return NULL;
            if (!accept(p, ':'))
                return fail(p, "expected ':' after a key");
        }
        struct json *child = parse_value(p, depth + 1);
        if (child == NULL)
            return NULL;
        child->key = key;
        *tail = child;
        tail = &child->next;
        node->count++;
    } while (accept(p, ','));
    return accept(p, close) ? node : fail(p, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
}

static struct json *parse_value(struct parser *p, int depth)
{
    if (depth > MAX_DEPTH)
        return fail(p, "nested too deeply");
    skip_space(p);
    struct json *node = arena_take(p->arena, sizeof *node);
    if (node == NULL)
        return fail(p, "out of memory");
    if (accept(p, '{'))
        return parse_children(p, node, '}', depth);
    if (accept(p, '['))
        return parse_children(p, node, ']', depth);
    if (accept(p, '"')) {
        node->kind = JSON_STRING;
        return (node->text = parse_string(p)) != NULL ? node : NULL;
    }
    if (accept_word(p, "null"))
        return node->kind = JSON_NULL, node;
    if (accept_word(p, "true"))
        return node->kind = JSON_TRUE, node;
    if (accept_word(p, "false"))
        return node->kind = JSON_FALSE, node;
    return parse_number(p, node);
}

struct json *json_parse(struct arena *arena, const char *text, size_t length, char *error, size_t error_size)
{
    struct parser p = {.arena = arena, .at = text, .start = text, .end = text + length,
                       .error = error, .error_size = error_size};
    error[0] = '\0';
    p.c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (p.c_locale == (locale_t)0)
        return fail(&p, "out of memory");
    struct json *root = parse_value(&p, 0);
    skip_space(&p);
    if (root != NULL && p.at != p.end)
        root = fail(&p, "text after the end of the document");
    freelocale(p.c_locale);
    return root;
}
