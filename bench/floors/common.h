/* What the floors share: the child, growing memory, the check, the report.
 *
 * A floor is bare system calls, written as well as anyone could. Kept memory
 * grows by doubling with realloc (the C library moves page tables, not bytes);
 * with `huge` the grown part is advised to use huge pages, in sizes that make
 * the mapping a multiple of 2 MiB. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READ_SIZE = 256 << 10, PIPE_SIZE = 256 << 10, BLOCK = 4096 };

extern char **environ;

struct stream {
    int fd, open;
    char *data;
    uint64_t length;
    size_t capacity;
    uint64_t first; /* the number that its first block must bear */
};

struct job {
    struct stream stream[2];
    int streams, huge;
    uint64_t bytes;
    pid_t pid;
    double started;
};

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void die(const char *what) {
    perror(what);
    exit(1);
}

/* ARGV: [--huge] CHILD STREAMS BYTES WRITE */
static inline struct job start(int argc, char **argv) {
    struct job job = {0};
    if (argc > 1 && !strcmp(argv[1], "--huge")) job.huge = 1, argv++, argc--;
    if (argc != 5) fputs("usage: [--huge] CHILD STREAMS BYTES WRITE\n", stderr), exit(2);
    job.streams = atoi(argv[2]);
    job.bytes = strtoull(argv[3], NULL, 10);
    job.started = now();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    int ends[2][2];
    for (int i = 0; i < job.streams; i++) {
        if (pipe2(ends[i], O_CLOEXEC)) die("pipe2");
        fcntl(ends[i][0], F_SETPIPE_SZ, PIPE_SIZE);
        posix_spawn_file_actions_adddup2(&actions, ends[i][1], i + 1);
        job.stream[i] = (struct stream){.fd = ends[i][0], .open = 1, .first = (uint64_t)i << 32};
    }
    errno = posix_spawn(&job.pid, argv[1], &actions, NULL, argv + 1, environ);
    if (errno) die("posix_spawn");
    for (int i = 0; i < job.streams; i++) close(ends[i][1]);
    return job;
}

static inline void grow(struct stream *s, int huge) {
    const size_t unit = 2 << 20, header = 64;
    size_t capacity = s->capacity ? s->capacity * 2 : READ_SIZE;
    if (huge && capacity >= 2 * unit) capacity = ((capacity + unit - 1) & ~(unit - 1)) - header;
    s->data = realloc(s->data, capacity);
    if (!s->data) die("realloc");
    s->capacity = capacity;
    if (huge && capacity > unit) {
        uintptr_t from = (uintptr_t)s->data & ~(uintptr_t)(BLOCK - 1);
        madvise((void *)from, (uintptr_t)s->data + capacity - from, MADV_HUGEPAGE);
    }
}

/* One read into the kept memory: what read(2) returned. */
static inline ssize_t keep(struct stream *s, int huge) {
    if (s->capacity - s->length < READ_SIZE && (s->capacity < 4 * READ_SIZE || s->capacity - s->length < BLOCK)) grow(s, huge);
    size_t room = s->capacity - s->length;
    ssize_t n = read(s->fd, s->data + s->length, room < READ_SIZE ? room : READ_SIZE);
    if (n > 0) s->length += (uint64_t)n;
    return n;
}

static inline long peak_rss_kb(void) {
    char line[256];
    long kb = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld", &kb) == 1) break;
    if (f) fclose(f);
    return kb;
}

/* Gives back unused memory, reaps, and reports; `kept` asks for the check. */
static inline int finish(struct job *job, int kept) {
    for (int i = 0; kept && i < job->streams; i++) job->stream[i].data = realloc(job->stream[i].data, job->stream[i].length);
    int status;
    waitpid(job->pid, &status, 0);
    double seconds = now() - job->started;
    long peak = peak_rss_kb();
    if (status) return fputs("the child failed\n", stderr), 1;
    for (int i = 0; i < job->streams; i++) {
        struct stream *s = &job->stream[i];
        if (s->length != job->bytes) return fputs("wrong length\n", stderr), 1;
        for (uint64_t at = 0; kept && at < s->length; at += BLOCK) {
            uint64_t number;
            memcpy(&number, s->data + at, sizeof number);
            if (number != s->first + at / BLOCK) return fputs("wrong bytes\n", stderr), 1;
        }
    }
    printf("{\"seconds\": %.6f, \"peak_rss_kb\": %ld, \"bytes_out\": %llu, \"bytes_err\": %llu}\n", seconds, peak,
           (unsigned long long)job->stream[0].length, (unsigned long long)job->stream[1].length);
    return 0;
}
