/* Floor: waiting for one child of ours.
 *
 * wait_one waitpid|pidfd HELPERS SLOTS one COUNT LEAST_US MOST_US
 * wait_one pidfd         HELPERS SLOTS hold SECONDS
 *
 * waitpid is one blocking call; pidfd is poll on a pidfd, then waitid. */
#include "wait.h"

static const char *helpers, *slots_path;

static pid_t start(int index, unsigned life_us) {
    char number[16], life[16];
    snprintf(number, sizeof number, "%d", index);
    snprintf(life, sizeof life, "%u", life_us);
    char *argv[] = {(char *)helper(helpers, "exiter"), (char *)slots_path, number, life, NULL};
    pid_t pid;
    errno = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
    if (errno) die("posix_spawn");
    return pid;
}

static int wait_pidfd(int fd, int timeout_ms) {
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    siginfo_t info;
    int ready = poll(&watched, 1, timeout_ms);
    if (ready == 1 && waitid((idtype_t)P_PIDFD, (id_t)fd, &info, WEXITED)) die("waitid");
    return ready;
}

static int latencies(int pidfd, int count, unsigned least, unsigned most) {
    volatile uint64_t *slots = map_slots(slots_path);
    double *us = calloc((size_t)count, sizeof *us);
    unsigned noise = 1;
    for (int i = 0; i < count; i++) {
        noise = noise * 1664525u + 1013904223u;
        pid_t pid = start(i, least + (noise >> 8) % (most - least));
        int fd = pidfd ? open_pidfd(pid) : -1;
        if (pidfd ? wait_pidfd(fd, -1) != 1 : waitpid(pid, NULL, 0) != pid) die("wait");
        us[i] = (double)(now_ns() - slots[i % SLOTS]) / 1e3;
        if (pidfd) close(fd);
    }
    print_latencies(us, count);
    return 0;
}

static int nothing_ends(int seconds) {
    pid_t pid = start(0, (unsigned)(seconds + 60) * 1000000u);
    int fd = open_pidfd(pid);
    struct use before = used();
    int ready = wait_pidfd(fd, seconds * 1000);
    struct use after = used();
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (ready) return fputs("it ended\n", stderr), 1;
    printf("{\"switches\": %ld, \"cpu_ms\": %.3f}\n", after.switches - before.switches, after.cpu_ms - before.cpu_ms);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    int pidfd = !strcmp(argv[1], "pidfd");
    helpers = argv[2];
    slots_path = argv[3];
    if (!strcmp(argv[4], "one") && argc == 8)
        return latencies(pidfd, atoi(argv[5]), (unsigned)atoi(argv[6]), (unsigned)atoi(argv[7]));
    if (!strcmp(argv[4], "hold") && pidfd) return nothing_ends(atoi(argv[5]));
    return 2;
}
