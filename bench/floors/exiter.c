/* The one process that is waited for: exiter SLOTS INDEX LIFE_US
 *
 * It ends by the clock, and not because the waiting side told it to: at that
 * moment nobody else runs. The last that it does is to write down the time. */
#include "slots.h"

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    volatile uint64_t *slot = map_slots(argv[1]) + atoi(argv[2]) % SLOTS;
    *slot = 0; /* and the page is ours to write */
    sleep_until(now_ns() + strtoull(argv[3], NULL, 10) * 1000);
    *slot = now_ns();
    _exit(0);
}
