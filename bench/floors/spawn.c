/* Floor: how fast /bin/true can be run, by system calls alone.
 *
 * spawn COUNT BATCHES RESIDENT_BYTES [CHANGED_COUNT]
 *
 * plain is posix_spawn and waitpid; changed sets umask, a limit, a session and
 * a directory in a child made by clone(CLONE_VM | CLONE_VFORK), which is what
 * posix_spawn does inside and cannot be asked for. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static char *const TRUE_ARGV[] = {"/bin/true", NULL};
static char stack[64 << 10] __attribute__((aligned(64)));

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static pid_t plain(void) {
    pid_t pid;
    if (posix_spawn(&pid, TRUE_ARGV[0], NULL, NULL, TRUE_ARGV, environ)) die("posix_spawn");
    return pid;
}

static int changed_child(void *mask) {
    struct rlimit files = {512, 512};
    umask(027);
    if (setrlimit(RLIMIT_NOFILE, &files) || setsid() < 0 || chdir("/")) _exit(126);
    for (int signal = 1; signal < NSIG; signal++) {
        struct sigaction action;
        if (!sigaction(signal, NULL, &action) && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
            action.sa_handler = SIG_DFL;
            sigaction(signal, &action, NULL);
        }
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
    execve(TRUE_ARGV[0], TRUE_ARGV, environ);
    _exit(127);
}

static pid_t changed(void) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = clone(changed_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) die("clone");
    return pid;
}

static double rate(pid_t (*spawn)(void), int count) {
    double started = now();
    for (int i = 0; i < count; i++) {
        int status;
        if (waitpid(spawn(), &status, 0) < 0 || status) die("child");
    }
    return count / (now() - started);
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    int count = atoi(argv[1]), batches = atoi(argv[2]), changed_count = argc > 4 ? atoi(argv[4]) : count;
    size_t resident = strtoull(argv[3], NULL, 10);
    double plain_rate[64], changed_rate[64];
    char *ballast = malloc(resident + 1);
    if (!ballast || batches < 1 || batches > 64) return 2;
    memset(ballast, 1, resident);
    for (int i = 0; i < batches; i++) {
        plain_rate[i] = rate(plain, count);
        changed_rate[i] = rate(changed, changed_count);
    }
    printf("{\"plain_per_s\": [");
    for (int i = 0; i < batches; i++) printf("%s%.3f", i ? ", " : "", plain_rate[i]);
    printf("], \"changed_per_s\": [");
    for (int i = 0; i < batches; i++) printf("%s%.3f", i ? ", " : "", changed_rate[i]);
    printf("], \"ballast\": %d}\n", ballast[resident / 2]);
    return 0;
}
