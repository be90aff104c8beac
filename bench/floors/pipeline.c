/* Floor: pipelines by system calls alone.
 *
 * pipeline COUNT PROGRAM [ARGUMENT]... [-- PROGRAM [ARGUMENT]...]...
 *
 * Runs the programs, each joined to the next by a pipe, COUNT times one after the
 * other, and prints the seconds. posix_spawn, pipe2 and waitpid; no status but 0 and
 * SIGPIPE is taken. Stdout of the last is /dev/null. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { MOST = 4096 };

static void die(const char *what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static pid_t start(char **argv, int in, int out) {
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions)) die("actions");
    if (in >= 0) posix_spawn_file_actions_adddup2(&actions, in, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    pid_t pid;
    if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ)) die(argv[0]);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    static char **stages[MOST];
    static pid_t pids[MOST];
    int count = 0;
    stages[count++] = argv + 2;
    for (int at = 2; at < argc; at++) {
        if (strcmp(argv[at], "--")) continue;
        argv[at] = NULL;
        if (count == MOST) return 2;
        stages[count++] = argv + at + 1;
    }
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0) die("/dev/null");
    double started = now();
    for (int left = atoi(argv[1]); left > 0; left--) {
        int in = -1;
        for (int at = 0; at < count; at++) {
            int ends[2] = {-1, null};
            if (at + 1 < count && pipe2(ends, O_CLOEXEC)) die("pipe");
            pids[at] = start(stages[at], in, ends[1]);
            if (in >= 0) close(in);
            if (ends[1] != null) close(ends[1]);
            in = ends[0];
        }
        for (int at = 0; at < count; at++) {
            int status;
            if (waitpid(pids[at], &status, 0) < 0) die("waitpid");
            if (status && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE)) die("a stage has failed");
        }
    }
    printf("%.6f\n", now() - started);
    return 0;
}
