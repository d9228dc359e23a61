/* task OUT NUMBER MS: the job that every participant is given.
 *
 * Its record says when it began to run and when it was about to end, on CLOCK_MONOTONIC, which all processes of a host
 * share; so the time between one task's end and the next one's start is all that a scheduler adds, up to the first line of main.
 * Linked statically: the loader's work is not the scheduler's. Records are appended with one write, which O_APPEND keeps whole. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct record {
    uint64_t number;
    int64_t began_ns, ended_ns;
    uint64_t pid;
    char devices[32]; /* CUDA_VISIBLE_DEVICES as the task saw it, cut to fit */
};

static int64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void rest(long long micros) {
    struct timespec left = {micros / 1000000, (micros % 1000000) * 1000};
    while (micros > 0 && nanosleep(&left, &left) != 0) {
    }
}

int main(int argc, char **argv) {
    struct record record = {.began_ns = monotonic_ns()};
    if (argc != 4) return 2;
    record.number = strtoull(argv[2], NULL, 10);
    record.pid = (uint64_t)getpid();
    const char *devices = getenv("CUDA_VISIBLE_DEVICES");
    if (devices) strncpy(record.devices, devices, sizeof record.devices - 1);
    rest((long long)(strtod(argv[3], NULL) * 1000));
    int out = open(argv[1], O_WRONLY | O_APPEND | O_CLOEXEC);
    if (out < 0) return 3;
    record.ended_ns = monotonic_ns();
    return write(out, &record, sizeof record) == sizeof record ? 0 : 4;
}
