/* A file of clock readings that helpers and subjects share: who ends a process
 * writes down when, and who waited for it looks there afterwards. */
#ifndef SLOTS_H
#define SLOTS_H
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 4096 };

static inline void die(const char *what) {
    perror(what);
    exit(1);
}

/* Every process of a machine reads the same from this clock. */
static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void sleep_until(uint64_t ns) {
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL)) {}
}

static inline volatile uint64_t *map_slots(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || ftruncate(fd, SLOTS * sizeof(uint64_t))) die(path);
    void *slots = mmap(NULL, SLOTS * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (slots == MAP_FAILED) die("mmap");
    close(fd);
    return slots;
}
#endif
