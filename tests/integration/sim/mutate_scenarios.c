/* Feeds damaged scenarios to the C reader, built with sanitizers: it must answer with a scenario or a message.
 *
 *     mutate_scenarios SEED ROUNDS FILE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenario.h"

static size_t damage(char *text, size_t length)
{
    static const char marks[] = "{}[]\",:0-e.\\un";
    for (int i = rand() % 6; i >= 0; i--) {
        size_t at = (size_t)rand() % length, from = (size_t)rand() % length, size = (size_t)rand() % 40;
        switch (rand() % 5) {
        case 0: text[at] = (char)rand(); break;
        case 1: text[at] = marks[(size_t)rand() % (sizeof marks - 1)]; break;
        case 2: length = at + 1; break;
        case 3: if (at + size < length && from + size < length) memmove(text + at, text + from, size); break;
        case 4: if (at + 4 < length) memcpy(text + at, "null", 4); break;
        }
    }
    return length;
}

static int try(const char *text, size_t length)
{
    /* Exactly as long as the text: a read beyond it is caught. */
    char *copy = malloc(length), error[256] = "";
    memcpy(copy, text, length);
    struct scenario *scenario = scenario_parse(copy, length, error, sizeof error);
    free(copy);
    double value;
    for (size_t i = 0; scenario != NULL && i < scenario->gpu_count; i++)
        metric_value(&scenario->gpus[i].power_watts, 1e11, &value);
    int answered = scenario != NULL || error[0] != '\0';
    scenario_free(scenario);
    return answered;
}

int main(int count, char **arguments)
{
    srand((unsigned int)atoi(arguments[1]));
    for (int file = 3; file < count; file++) {
        static char original[1 << 20], text[1 << 20];
        FILE *stream = fopen(arguments[file], "rb");
        size_t length = stream != NULL ? fread(original, 1, sizeof original, stream) : 0;
        if (length == 0 || !try(original, length))
            return 2;
        fclose(stream);
        for (int round = atoi(arguments[2]); round > 0; round--) {
            memcpy(text, original, length);
            if (!try(text, damage(text, length)))
                return 1;
        }
    }
    puts("survived");
    return 0;
}
