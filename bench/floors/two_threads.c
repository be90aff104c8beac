/* Floor: a plain blocking reader a stream, 256 KiB pipes, everything kept. */
#include "common.h"

static int huge;

static void *reader(void *arg) {
    struct stream *s = arg;
    ssize_t n;
    while ((n = keep(s, huge)) > 0) {
    }
    if (n < 0) die("read");
    return NULL;
}

int main(int argc, char **argv) {
    struct job job = start(argc, argv);
    huge = job.huge;
    pthread_t second;
    if (job.streams == 2 && pthread_create(&second, NULL, reader, &job.stream[1])) die("pthread_create");
    reader(&job.stream[0]);
    if (job.streams == 2) pthread_join(second, NULL);
    return finish(&job, 1);
}
