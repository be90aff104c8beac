/* The parent of processes that are strangers to whoever waits for them.
 *
 * holder SLOTS N: starts N children that sleep, prints their numbers on one
 * line, and obeys the lines on stdin:
 *
 *   each COUNT STEP_US  kills COUNT of them, one every STEP_US (a quarter more or
 *                       less), in no order; writes the time before each kill into
 *                       the slot of its place in the line; reaps it at once
 *   all                 kills all with one call, the time before it in slot 0,
 *                       and reaps them
 *
 * At the end of stdin it kills and reaps those that are left. */
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "slots.h"

static pid_t *pids;
static int count, living;

static uint32_t noise(void) {
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static pid_t start(pid_t group) {
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) die("fork");
    if (pid) {
        setpgid(pid, group ? group : pid);
        return pid;
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent) _exit(1);
    setpgid(0, group);
    for (;;) pause();
}

static void end_all(volatile uint64_t *slot) {
    if (!living) return;
    *slot = now_ns();
    /* The children are a group of their own. Its number is nobody else's, for
     * some of them have not been reaped. */
    kill(-pids[0], SIGKILL);
    for (; living; living--) waitpid(-1, NULL, 0);
}

static void end_each(volatile uint64_t *slots, int kills, unsigned step_us) {
    int *order = malloc((size_t)count * sizeof *order);
    for (int i = 0; i < count; i++) order[i] = i;
    uint64_t next = now_ns();
    for (int i = 0; i < kills; i++) {
        int other = i + (int)(noise() % (unsigned)(count - i)), place = order[other];
        order[other] = order[i];
        next += 1000u * (step_us * 3u / 4 + noise() % (step_us / 2));
        sleep_until(next);
        slots[place] = now_ns();
        kill(pids[place], SIGKILL);
        waitpid(pids[place], NULL, 0);
        living--;
    }
    free(order);
}

int main(int argc, char **argv) {
    char line[128];
    unsigned step_us;
    int kills;
    if (argc != 3) return 2;
    volatile uint64_t *slots = map_slots(argv[1]);
    count = living = atoi(argv[2]);
    if (count < 1 || !(pids = calloc((size_t)count, sizeof *pids))) return 2;
    for (int i = 0; i < SLOTS; i++) slots[i] = 0;
    for (int i = 0; i < count; i++) pids[i] = start(pids[0]);
    for (int i = 0; i < count; i++) printf("%d%c", pids[i], i + 1 < count ? ' ' : '\n');
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "each %d %u", &kills, &step_us) == 2 && kills <= count && count <= SLOTS && step_us > 1)
            end_each(slots, kills, step_us);
        else if (!strcmp(line, "all\n"))
            end_all(slots);
        else
            return fprintf(stderr, "holder: cannot make sense of %s", line), 2;
    }
    end_all(slots);
    return 0;
}
