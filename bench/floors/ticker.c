/* A child with a rhythm: ticker NOTE COUNT SIZE STEP_US [STREAMS]
 *
 * Every STEP_US it writes SIZE bytes to stdout, as one line that begins with its
 * number, and with STREAMS = 2 as many to stderr; COUNT times. It never catches
 * up: a write that was held up moves all that follow. Then it writes down in the
 * file NOTE, if that is not `-`, as eight bytes each: the nanoseconds of its whole
 * life and those that it spent inside write. Last it reads stdin to its end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void put(int fd, const char *data, size_t size) {
    while (size) {
        ssize_t n = write(fd, data, size);
        if (n <= 0) _exit(3);
        data += n;
        size -= (size_t)n;
    }
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    int64_t began = now(), inside = 0;
    int count = atoi(argv[2]), streams = argc > 5 ? atoi(argv[5]) : 1;
    size_t size = strtoull(argv[3], NULL, 10);
    struct timespec step = {.tv_sec = atol(argv[4]) / 1000000, .tv_nsec = atol(argv[4]) % 1000000 * 1000};
    char *line = malloc(size + 1), number[16];
    if (!line || size < sizeof number) return 2;
    memset(line, 't', size);
    line[size - 1] = '\n';
    for (int i = 0; i < count; i++) {
        if (i && nanosleep(&step, NULL)) return 2;
        snprintf(number, sizeof number, "%010d", i);
        memcpy(line, number, 10);
        int64_t before = now();
        for (int stream = 1; stream <= streams; stream++) put(stream, line, size);
        inside += now() - before;
    }
    int64_t notes[2] = {now() - began, inside};
    if (strcmp(argv[1], "-")) {
        int fd = open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || pwrite(fd, notes, sizeof notes, 0) != sizeof notes) return 2;
    }
    char rest[16];
    while (read(0, rest, sizeof rest) > 0) {}
    return 0;
}
