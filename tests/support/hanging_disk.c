/* Loaded before the C library: while the file $HANGS is there, nothing that writes below the folder $HANGING ever ends,
 * as on a disk that does not answer. Python's and SQLite's writes both come by here. The first one that hangs creates
 * $HANGS.hung. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int is_below(const char *path)
{
    const char *folder = getenv("HANGING");
    return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static void hang(int descriptor)
{
    const char *hangs = getenv("HANGS");
    char link[64], path[PATH_MAX];
    ssize_t length;

    if (hangs == NULL || access(hangs, F_OK) != 0)
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return;
    path[length] = '\0';
    if (!is_below(path))
        return;
    snprintf(path, sizeof path, "%s.hung", hangs);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    for (;;)
        pause();
}

#define HANGING(result, name, parameters, arguments)                      \
    result name parameters                                                \
    {                                                                     \
        static result(*next) parameters;                                  \
        if (next == NULL)                                                 \
            next = (result(*) parameters)dlsym(RTLD_NEXT, #name);         \
        hang(descriptor);                                                 \
        return next arguments;                                            \
    }

HANGING(int, fsync, (int descriptor), (descriptor))
HANGING(int, fdatasync, (int descriptor), (descriptor))
HANGING(int, ftruncate64, (int descriptor, off64_t length), (descriptor, length))
HANGING(ssize_t, write, (int descriptor, const void *bytes, size_t count), (descriptor, bytes, count))
HANGING(ssize_t, pwrite64, (int descriptor, const void *bytes, size_t count, off64_t at),
        (descriptor, bytes, count, at))
