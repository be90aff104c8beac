/* Floor: waiting for many strangers.
 *
 * wait_many epoll|threads HELPERS SLOTS idle N SECONDS LOOK_MS
 * wait_many epoll|threads HELPERS SLOTS among N COUNT STEP_US
 * wait_many epoll|threads HELPERS SLOTS mass N
 *
 * epoll is a pidfd each in one epoll instance; threads is a thread each, which
 * blocks in poll on its pidfd. */
#include <pthread.h>
#include <sys/epoll.h>
#include "wait.h"

enum { BATCH = 1024 };

/* A way to watch: ended() gives the places of who has ended since the last call,
 * after `timeout_ms` at most. */
struct way {
    void (*watch)(const pid_t *pids, int n);
    int (*ended)(int *places, int timeout_ms);
};

static int epoll_fd, *fds;

static void epoll_watch(const pid_t *pids, int n) {
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    fds = calloc((size_t)n, sizeof *fds);
    for (int i = 0; i < n; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        fds[i] = open_pidfd(pids[i]);
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fds[i], &event)) die("epoll_ctl");
    }
}

static int epoll_ended(int *places, int timeout_ms) {
    struct epoll_event events[BATCH];
    int n = epoll_wait(epoll_fd, events, BATCH, timeout_ms);
    for (int i = 0; i < n; i++) {
        places[i] = (int)events[i].data.u32;
        close(fds[places[i]]); /* which takes it out */
    }
    return n;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some_ended;
static int *queue, queued, taken;

static void *watch_one(void *place) {
    int i = (int)(intptr_t)place;
    struct pollfd watched = {.fd = fds[i], .events = POLLIN};
    poll(&watched, 1, -1);
    pthread_mutex_lock(&lock);
    queue[queued++] = i;
    pthread_cond_signal(&some_ended);
    pthread_mutex_unlock(&lock);
    close(fds[i]);
    return NULL;
}

static void threads_watch(const pid_t *pids, int n) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&some_ended, &monotonic);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    fds = calloc((size_t)n, sizeof *fds);
    queue = calloc((size_t)n, sizeof *queue);
    for (int i = 0; i < n; i++) {
        pthread_t thread;
        fds[i] = open_pidfd(pids[i]);
        errno = pthread_create(&thread, &small, watch_one, (void *)(intptr_t)i);
        if (errno) die("pthread_create");
    }
}

static int threads_ended(int *places, int timeout_ms) {
    uint64_t until = now_ns() + (uint64_t)timeout_ms * 1000000u;
    struct timespec deadline = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    int n = 0;
    pthread_mutex_lock(&lock);
    while (taken == queued && timeout_ms)
        if (timeout_ms < 0)
            pthread_cond_wait(&some_ended, &lock);
        else if (pthread_cond_timedwait(&some_ended, &lock, &deadline))
            break;
    while (taken < queued && n < BATCH) places[n++] = queue[taken++];
    pthread_mutex_unlock(&lock);
    return n;
}

static int idle(struct way way, struct strangers *s, int seconds, int look_ms) {
    int places[BATCH], looks = 0;
    uint64_t begun = now_ns();
    way.watch(s->pids, s->n);
    int early = way.ended(places, 0);
    double setup_us = (double)(now_ns() - begun) / 1e3 / s->n;
    uint64_t from = now_ns(), until = from + (uint64_t)look_ms * 1000000u;
    for (; looks < 3 || now_ns() < until; looks++) early += way.ended(places, 0);
    double look_ns = (double)(now_ns() - from) / looks;
    struct use before = used();
    early += way.ended(places, seconds * 1000);
    struct use after = used();
    if (early) return fputs("some ended\n", stderr), 1;
    printf("{\"setup_us\": %.3f, \"look_ns\": %.1f, \"cpu_ms\": %.3f, \"switches\": %ld}\n", setup_us, look_ns,
           after.cpu_ms - before.cpu_ms, after.switches - before.switches);
    return 0;
}

static int among(struct way way, struct strangers *s, const char *slots_path, int count, const char *step_us) {
    int places[BATCH], seen = 0;
    char line[64];
    volatile uint64_t *slots = map_slots(slots_path);
    double *us = calloc((size_t)count, sizeof *us);
    way.watch(s->pids, s->n);
    snprintf(line, sizeof line, "each %d %s", count, step_us);
    tell(s, line);
    while (seen < count) {
        int n = way.ended(places, -1);
        uint64_t now = now_ns();
        for (int i = 0; i < n; i++) us[seen++] = (double)(now - slots[places[i]]) / 1e3;
    }
    print_latencies(us, count);
    return 0;
}

static int mass(struct way way, struct strangers *s, const char *slots_path) {
    int places[BATCH], seen = 0;
    volatile uint64_t *slots = map_slots(slots_path);
    uint64_t begun = now_ns();
    way.watch(s->pids, s->n);
    double setup_us = (double)(now_ns() - begun) / 1e3 / s->n;
    struct use before = used();
    tell(s, "all");
    while (seen < s->n) seen += way.ended(places, -1);
    uint64_t now = now_ns();
    struct use after = used();
    printf("{\"setup_us\": %.3f, \"exit_us\": %.3f, \"cpu_us\": %.3f, \"switches\": %ld}\n", setup_us,
           (double)(now - slots[0]) / 1e3 / s->n, (after.cpu_ms - before.cpu_ms) * 1e3 / s->n, after.switches - before.switches);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    struct way way = {epoll_watch, epoll_ended};
    if (!strcmp(argv[1], "threads")) way = (struct way){threads_watch, threads_ended};
    raise_nofile();
    struct strangers s = hold(argv[2], argv[3], atoi(argv[5]));
    int failed = 2;
    if (!strcmp(argv[4], "idle") && argc == 8) failed = idle(way, &s, atoi(argv[6]), atoi(argv[7]));
    if (!strcmp(argv[4], "among") && argc == 8) failed = among(way, &s, argv[3], atoi(argv[6]), argv[7]);
    if (!strcmp(argv[4], "mass") && argc == 6) failed = mass(way, &s, argv[3]);
    let_go(&s);
    return failed;
}
