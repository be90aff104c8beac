/* Floor: what it costs to learn who has what open, by system calls alone.
 *
 * look [THREADS]
 *
 * Whoever is to tell who holds the other end of a pipe has to ask for the links of all
 * processes, since there is no list of holders. That is all that is done here: /proc listed
 * once, and for each process its folder of descriptors opened and listed, and each link read.
 * No link is looked at, nobody's parent or state is asked for, and nothing is kept. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 1 << 17, AT_ONCE = 16 };

/* getdents64(2) */
struct entry {
    unsigned long long inode, offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

static int proc, count;
static int pids[MOST];
static atomic_int next;
static atomic_long links;

static void each(int dir, void (*call)(int, const char *)) {
    _Alignas(8) char buffer[8192];
    long length;
    while ((length = syscall(SYS_getdents64, dir, buffer, sizeof buffer)) > 0)
        for (long at = 0; at < length; at += ((struct entry *)(buffer + at))->length) {
            const char *name = ((struct entry *)(buffer + at))->name;
            if (name[0] >= '0' && name[0] <= '9') call(dir, name);
        }
}

static void add(int dir, const char *name) {
    (void)dir;
    if (count < MOST) pids[count++] = atoi(name);
}

static void read_link(int dir, const char *name) {
    char link[64];
    if (readlinkat(dir, name, link, sizeof link) > 0) links++;
}

static void *work(void *unused) {
    int begin;
    while ((begin = atomic_fetch_add(&next, AT_ONCE)) < count)
        for (int at = begin; at < begin + AT_ONCE && at < count; at++) {
            char path[32];
            sprintf(path, "%d/fd", pids[at]);
            int dir = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (dir < 0) continue;
            each(dir, read_link);
            close(dir);
        }
    return unused;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t others[64];
    if (threads < 1 || threads > 64) return fprintf(stderr, "look: 1 to 64 threads\n"), 2;
    proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0) return perror("/proc"), 1;
    each(proc, add);
    for (int n = 1; n < threads; n++)
        if (pthread_create(&others[n], NULL, work, NULL)) return fprintf(stderr, "look: no thread\n"), 1;
    work(NULL);
    for (int n = 1; n < threads; n++) pthread_join(others[n], NULL);
    printf("%d processes, %ld links\n", count, (long)links);
    return 0;
}
