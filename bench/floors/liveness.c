/* Bare ways to know whether a process lives: liveness check BATCHES BATCH_US
 *
 * A child holds all that can be held: a robust mutex and a word in shared memory,
 * a lock on a file, one end of a socketpair. Each check in turn is made so often
 * that it takes about BATCH_US, and that BATCHES times. One line of JSON: of each
 * check its nanoseconds, or why it cannot be made here.
 *
 * No check sleeps, so time is that of the processor which this thread had: what
 * others take meanwhile is not counted. */
#include "slots.h" /* first: it asks for GNU extensions */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* From <linux/pidfd.h>, which older headers lack: the size is part of the number
 * of the call, and the kernel fills as much as it is given room for. */
struct info {
    uint64_t mask;
    uint64_t cgroup;
    uint32_t pid, tgid, ppid, ids[8];
    int32_t exit_code;
};
enum { GET_INFO = _IOWR(0xFF, 11, struct info) };

struct shared {
    pthread_mutex_t mutex;
    _Atomic uint32_t word;
    _Atomic int ready;
};

static struct peer {
    pid_t pid;
    const _Atomic uint32_t *word; /* mapped for reading, as a monitor has it */
    pthread_mutex_t *mutex;
    int pidfd, directory, empty, epoll, lock, file, socket;
} peer;

static void dead(const char *name) {
    fprintf(stderr, "%s: the peer lives, and was called dead\n", name);
    exit(1);
}

/* What each call says of a process that lives. */
static inline int plain_load(const _Atomic uint32_t *word) { return atomic_load_explicit(word, memory_order_relaxed) != 0; }
static int trylock(const struct peer *p) { return pthread_mutex_trylock(p->mutex) == EBUSY; }
static int epoll_empty(const struct peer *p) {
    struct epoll_event event;
    return epoll_wait(p->empty, &event, 1, 0) == 0;
}
static int epoll_pidfd(const struct peer *p) {
    struct epoll_event event;
    return epoll_wait(p->epoll, &event, 1, 0) == 0;
}
static int poll_pidfd(const struct peer *p) {
    struct pollfd entry = {.fd = p->pidfd, .events = POLLIN};
    return poll(&entry, 1, 0) == 0;
}
static int waitid_pidfd(const struct peer *p) {
    siginfo_t info;
    info.si_pid = 0;
    return waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}
static int kill_0(const struct peer *p) { return kill(p->pid, 0) == 0; }
static int send_signal(const struct peer *p) { return syscall(SYS_pidfd_send_signal, p->pidfd, 0, NULL, 0) == 0; }
static int get_info(const struct peer *p) {
    struct info info = {.mask = 0};
    return ioctl(p->pidfd, GET_INFO, &info) == 0;
}
static int access_proc(const struct peer *p) { return faccessat(p->directory, "stat", F_OK, 0) == 0; }
static int read_stat(const struct peer *p) {
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", p->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    close(fd);
    return n > 0;
}
static int flock_probe(const struct peer *p) { return flock(p->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK; }
static int ofd_probe(const struct peer *p) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(p->file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
static int peek(const struct peer *p) {
    char byte;
    return recv(p->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

#define FOUR(x) x x x x
/* `rows` of sixteen, so that what the loop costs is not in the figure. */
#define LOOP(name, call) \
    static void loop_##name(uint64_t rows) { \
        const struct peer p = peer; \
        while (rows--) { FOUR(FOUR(if (!(call)) dead(#name);)) } \
    }
LOOP(plain_load, plain_load(p.word))
LOOP(trylock, trylock(&p))
LOOP(epoll_empty, epoll_empty(&p))
LOOP(epoll_pidfd, epoll_pidfd(&p))
LOOP(poll_pidfd, poll_pidfd(&p))
LOOP(waitid_pidfd, waitid_pidfd(&p))
LOOP(kill_0, kill_0(&p))
LOOP(send_signal, send_signal(&p))
LOOP(get_info, get_info(&p))
LOOP(access_proc, access_proc(&p))
LOOP(read_stat, read_stat(&p))
LOOP(flock_probe, flock_probe(&p))
LOOP(ofd_probe, ofd_probe(&p))
LOOP(peek, peek(&p))

static struct check {
    const char *name;
    void (*loop)(uint64_t);
    int (*works)(const struct peer *); /* none: it does */
    uint64_t rows;
} checks[] = {
    {"plain load, C", loop_plain_load, NULL, 0},
    {"pthread_mutex_trylock", loop_trylock, trylock, 0},
    {"epoll_wait, empty set", loop_epoll_empty, epoll_empty, 0},
    {"epoll_wait, pidfd", loop_epoll_pidfd, epoll_pidfd, 0},
    {"poll, pidfd", loop_poll_pidfd, poll_pidfd, 0},
    {"waitid, pidfd", loop_waitid_pidfd, waitid_pidfd, 0},
    {"kill", loop_kill_0, kill_0, 0},
    {"pidfd_send_signal", loop_send_signal, send_signal, 0},
    {"PIDFD_GET_INFO", loop_get_info, get_info, 0},
    {"faccessat, /proc", loop_access_proc, access_proc, 0},
    {"open, read, close /proc/PID/stat", loop_read_stat, read_stat, 0},
    {"flock", loop_flock_probe, flock_probe, 0},
    {"F_OFD_GETLK", loop_ofd_probe, ofd_probe, 0},
    {"recv, socketpair", loop_peek, peek, 0},
};
enum { CHECKS = sizeof checks / sizeof *checks };

static int memory(const char *name, size_t size) {
    int fd = (int)syscall(SYS_memfd_create, name, 1 /* MFD_CLOEXEC */);
    if (fd < 0 || ftruncate(fd, (off_t)size)) die("memfd_create");
    return fd;
}

/* Another open file of the same memory: locks belong to open files. */
static int again(int fd) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int other = open(path, O_RDWR | O_CLOEXEC);
    if (other < 0) die(path);
    return other;
}

static void start(void) {
    int words = memory("words", 4096), locked = memory("locked", 1), ends[2];
    struct shared *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, words, 0);
    void *read_only = mmap(NULL, 4096, PROT_READ, MAP_SHARED, words, 0);
    if (shared == MAP_FAILED || read_only == MAP_FAILED) die("mmap");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) die("socketpair");
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->mutex, &robust);

    pid_t parent = getpid();
    peer.pid = fork();
    if (peer.pid < 0) die("fork");
    if (peer.pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent) _exit(1);
        close(ends[0]);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        /* One open file has both kinds of lock: they do not see each other. */
        int own = again(locked);
        if (pthread_mutex_lock(&shared->mutex) || flock(own, LOCK_EX) || fcntl(own, F_OFD_SETLK, &lock)) die("lock");
        shared->word = 0x80000000u | (uint32_t)getpid();
        shared->ready = 1;
        for (;;) pause();
    }
    close(ends[1]);
    peer.word = &((const struct shared *)read_only)->word;
    peer.mutex = &shared->mutex;
    peer.socket = ends[0];
    peer.lock = peer.file = again(locked);
    peer.pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    if (peer.pidfd < 0) die("pidfd_open");
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", peer.pid);
    peer.directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    peer.empty = epoll_create1(EPOLL_CLOEXEC);
    peer.epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    if (peer.empty < 0 || peer.epoll < 0 || epoll_ctl(peer.epoll, EPOLL_CTL_ADD, peer.pidfd, &event)) die("epoll");
    while (!shared->ready) {
        if (waitpid(peer.pid, NULL, WNOHANG)) dead("start");
        usleep(100);
    }
}

static double used_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double timed(struct check *check, uint64_t rows) {
    double began = used_ns();
    check->loop(rows);
    return used_ns() - began;
}

int main(int argc, char **argv) {
    if (argc != 4) return fputs("usage: check BATCHES BATCH_US\n", stderr), 2;
    int batches = atoi(argv[2]);
    double wanted = atof(argv[3]) * 1e3, *found = calloc((size_t)(batches * CHECKS), sizeof *found);
    if (batches < 1 || !found) return 2;
    start();
    for (int i = 0; i < CHECKS; i++) {
        struct check *check = &checks[i];
        if (check->works && !check->works(&peer)) continue;
        for (uint64_t rows = 1; !check->rows; rows *= 4) {
            double took = timed(check, rows) + 1;
            if (took * 4 > wanted) check->rows = (uint64_t)((double)rows * wanted / took) + 1;
        }
    }
    for (int batch = 0; batch < batches; batch++)
        for (int turn = 0; turn < CHECKS; turn++) {
            int i = (turn + batch) % CHECKS;
            if (checks[i].rows) found[i * batches + batch] = timed(&checks[i], checks[i].rows) / (double)(checks[i].rows * 16);
        }
    for (int i = 0; i < CHECKS; i++) {
        printf("%c\"%s\": ", i ? ',' : '{', checks[i].name);
        if (!checks[i].rows) {
            printf("\"not to be had here\"");
            continue;
        }
        for (int batch = 0; batch < batches; batch++) printf("%c%.4f", batch ? ',' : '[', found[i * batches + batch]);
        printf("]");
    }
    printf("}\n");
    kill(peer.pid, SIGKILL);
    waitpid(peer.pid, NULL, 0);
    return 0;
}
