/* The child of the cases of lines: lines COUNT WRITE
 *
 * Writes COUNT lines of 100 bytes, WRITE bytes a call, a multiple of 100. Each
 * begins with its number in ten digits. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 100, DIGITS = 10 };

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    uint64_t count = strtoull(argv[1], NULL, 10), number = 0;
    size_t size = strtoull(argv[2], NULL, 10);
    if (!size || size % LINE) return 2;
    char *buffer = malloc(size);
    if (!buffer) return 2;
    memset(buffer, 'l', size);
    while (number < count) {
        size_t fill = 0;
        for (; fill < size && number < count; fill += LINE, number++) {
            uint64_t rest = number;
            for (int at = DIGITS; at--; rest /= 10) buffer[fill + (size_t)at] = (char)('0' + rest % 10);
            buffer[fill + LINE - 1] = '\n';
        }
        for (size_t done = 0; done < fill;) {
            ssize_t n = write(1, buffer + done, fill - done);
            if (n <= 0) return 3;
            done += (size_t)n;
        }
    }
    return 0;
}
