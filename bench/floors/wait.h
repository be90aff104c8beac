/* What the floors of the suite `wait` share. */
#ifndef WAIT_H
#define WAIT_H
#include "slots.h" /* first: it asks for GNU extensions */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static inline int open_pidfd(pid_t pid) {
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) die("pidfd_open");
    return fd;
}

/* What this process, all its threads, has used. */
struct use {
    double cpu_ms;
    long switches;
};

static inline struct use used(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    double ms = (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e3 + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e3;
    return (struct use){ms, r.ru_nvcsw};
}

static inline const char *helper(const char *dir, const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static inline void print_latencies(const double *us, int n) {
    printf("{\"latency_us\": [");
    for (int i = 0; i < n; i++) printf("%s%.3f", i ? ", " : "", us[i]);
    printf("]}\n");
}

/* Processes that are not ours. */
struct strangers {
    pid_t holder, *pids;
    int n;
    FILE *to;
};

static inline struct strangers hold(const char *dir, const char *slots, int n) {
    struct strangers s = {.n = n, .pids = calloc((size_t)n, sizeof(pid_t))};
    char number[16];
    snprintf(number, sizeof number, "%d", n);
    char *argv[] = {(char *)helper(dir, "holder"), (char *)slots, number, NULL};
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) die("pipe2");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    errno = posix_spawn(&s.holder, argv[0], &actions, NULL, argv, environ);
    if (errno) die("posix_spawn");
    close(in[0]);
    close(out[1]);
    s.to = fdopen(in[1], "w");
    FILE *from = fdopen(out[0], "r");
    for (int i = 0; i < n; i++)
        if (fscanf(from, "%d", &s.pids[i]) != 1) die("holder");
    fclose(from);
    return s;
}

static inline void tell(struct strangers *s, const char *line) {
    fprintf(s->to, "%s\n", line);
    fflush(s->to);
}

static inline void let_go(struct strangers *s) {
    fclose(s->to);
    waitpid(s->holder, NULL, 0);
}

static inline void raise_nofile(void) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}
#endif
