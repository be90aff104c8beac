/* The floor of the cases of one reader: read chunks|lines CHILD ARGUMENT…
 *
 * A blocking reader on a pipe of 256 KiB that keeps nothing, and counts the ends
 * of lines where those are asked for. */
#include "common.h"

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int ends[2], status;
    double started = now();
    if (pipe2(ends, O_CLOEXEC)) die("pipe2");
    fcntl(ends[0], F_SETPIPE_SZ, PIPE_SIZE);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    pid_t pid;
    errno = posix_spawn(&pid, argv[2], &actions, NULL, argv + 2, environ);
    if (errno) die("posix_spawn");
    close(ends[1]);
    char *buffer = malloc(READ_SIZE);
    if (!buffer) die("malloc");
    uint64_t bytes = 0, lines = 0;
    ssize_t n;
    while ((n = read(ends[0], buffer, READ_SIZE)) > 0) {
        bytes += (uint64_t)n;
        if (argv[1][0] != 'l') continue;
        for (char *at = buffer; (at = memchr(at, '\n', (size_t)(buffer + n - at))); at++) lines++;
    }
    if (n < 0) die("read");
    if (waitpid(pid, &status, 0) != pid || status) return fputs("the child failed\n", stderr), 1;
    printf("{\"seconds\": %.6f, \"bytes\": %llu, \"lines\": %llu, \"peak_rss_kb\": %ld}\n", now() - started,
           (unsigned long long)bytes, (unsigned long long)lines, peak_rss_kb());
    return 0;
}
