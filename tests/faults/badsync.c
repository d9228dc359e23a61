/* Preloaded: while $BAD_SYNC exists, the disk cannot make sure of any write-ahead journal. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bad(int fd)
{
    char link[64], path[4096];
    const char *flag = getenv("BAD_SYNC");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 4 || !flag || access(flag, F_OK))
        return 0;
    path[n] = 0;
    return !strcmp(path + n - 4, "-wal");
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    if (bad(fd)) { errno = EIO; return -1; }
    return (int)syscall(SYS_fsync, fd);
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    if (bad(fd)) { errno = EIO; return -1; }
    return (int)syscall(SYS_fdatasync, fd);
}
