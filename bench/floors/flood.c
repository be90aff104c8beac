/* The child of the capture cases: flood STREAMS BYTES WRITE
 *
 * Writes BYTES to stdout, and with STREAMS = 2 as many to stderr from a second
 * thread, WRITE bytes a call. Every 4,096-byte block begins with its number
 * (eight bytes, little endian; bit 32 set on stderr), so that a reader can
 * prove that it kept exactly these bytes in this order. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 4096 };

static uint64_t total;
static size_t write_size;

static void *flood(void *arg) {
    int fd = (int)(intptr_t)arg;
    char *buffer = aligned_alloc(BLOCK, write_size);
    if (!buffer) _exit(2);
    memset(buffer, fd == 1 ? 'o' : 'e', write_size);
    uint64_t number = fd == 1 ? 0 : (uint64_t)1 << 32;
    for (uint64_t done = 0; done < total; done += write_size) {
        for (size_t at = 0; at < write_size; at += BLOCK, number++) memcpy(buffer + at, &number, sizeof number);
        for (size_t left = write_size; left;) {
            ssize_t n = write(fd, buffer + write_size - left, left);
            if (n <= 0) _exit(3);
            left -= (size_t)n;
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    total = strtoull(argv[2], NULL, 10);
    write_size = strtoull(argv[3], NULL, 10);
    if (!write_size || write_size % BLOCK || total % write_size) return 2;
    pthread_t second;
    int two = argv[1][0] == '2';
    if (two && pthread_create(&second, NULL, flood, (void *)(intptr_t)2)) return 2;
    flood((void *)(intptr_t)1);
    if (two) pthread_join(second, NULL);
    return 0;
}
