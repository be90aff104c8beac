/* Floor: one poll loop on the caller's thread, 256 KiB pipes, everything kept.
 * Reads first and polls only when nothing was there. */
#include "common.h"

int main(int argc, char **argv) {
    struct job job = start(argc, argv);
    int open = job.streams;
    for (int i = 0; i < job.streams; i++) fcntl(job.stream[i].fd, F_SETFL, O_NONBLOCK);
    while (open) {
        int moved = 0;
        struct pollfd idle[2];
        nfds_t waiting = 0;
        for (int i = 0; i < job.streams; i++) {
            struct stream *s = &job.stream[i];
            if (!s->open) continue;
            ssize_t n = keep(s, job.huge);
            if (n == 0) s->open = 0, open--;
            if (n < 0 && errno != EAGAIN) die("read");
            moved |= n >= 0;
            if (n < 0) idle[waiting++] = (struct pollfd){.fd = s->fd, .events = POLLIN};
        }
        if (!moved && open) poll(idle, waiting, -1);
    }
    return finish(&job, 1);
}
