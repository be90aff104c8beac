/* Waits until nobody reads its stdout any more: epipe NOTE
 *
 * Says "r\n" first. Then it sleeps in poll, which tells when the last reader is
 * gone, writes down the monotonic clock in the file NOTE (eight bytes,
 * nanoseconds), and proves by a write that it is so. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 2 || write(1, "r\n", 2) != 2) return 2;
    signal(SIGPIPE, SIG_IGN);
    struct pollfd out = {.fd = 1};
    while (poll(&out, 1, -1) < 0 && errno == EINTR) {}
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t then = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    if (write(1, "x", 1) != -1 || errno != EPIPE) return 3;
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return fd < 0 || pwrite(fd, &then, sizeof then, 0) != sizeof then ? 2 : 0;
}
