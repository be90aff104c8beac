/* For information: a blocking reader a stream that keeps nothing. */
#include "common.h"

static void *reader(void *arg) {
    struct stream *s = arg;
    char *buffer = malloc(READ_SIZE);
    ssize_t n;
    if (!buffer) die("malloc");
    while ((n = read(s->fd, buffer, READ_SIZE)) > 0) s->length += (uint64_t)n;
    if (n < 0) die("read");
    free(buffer);
    return NULL;
}

int main(int argc, char **argv) {
    struct job job = start(argc, argv);
    pthread_t second;
    if (job.streams == 2 && pthread_create(&second, NULL, reader, &job.stream[1])) die("pthread_create");
    reader(&job.stream[0]);
    if (job.streams == 2) pthread_join(second, NULL);
    return finish(&job, 0);
}
