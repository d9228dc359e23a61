/* floor SLOTS < LIST: how fast this machine can hand a slot to the next task at all.
 *
 * LIST has one command a line, its words separated by tabs. SLOTS children run at a time; whenever one ends the next line is
 * spawned. There is no queue to ask, no record, no GPU: everything a scheduler does beyond this is its own cost. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;
enum { MAX_WORDS = 32 };

static int spawn_next(char **line, size_t *room) {
    char *words[MAX_WORDS + 1], *rest;
    int count = 0;
    pid_t child;
    if (getline(line, room, stdin) <= 0) return 0;
    rest = *line;
    rest[strcspn(rest, "\n")] = 0;
    while (count < MAX_WORDS && rest) words[count++] = strsep(&rest, "\t");
    words[count] = NULL;
    if (posix_spawn(&child, words[0], NULL, NULL, words, environ) != 0) {
        perror(words[0]);
        exit(1);
    }
    return 1;
}

int main(int argc, char **argv) {
    int slots = argc > 1 ? atoi(argv[1]) : 1, alive = 0;
    char *line = NULL;
    size_t room = 0;
    while (alive < slots && spawn_next(&line, &room)) alive++;
    while (alive > 0 && wait(NULL) > 0) alive -= !spawn_next(&line, &room);
    return 0;
}
