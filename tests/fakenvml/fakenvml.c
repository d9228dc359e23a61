/*
 * A stand-in for libnvidia-ml.so.1: the real ABI (as nvidia-ml-py declares it), the hardware from a text file.
 *
 * FAKE_NVML_STATE names the file. It is read again whenever it changes, so that cards can come and go under a running probe.
 * One thing a line; what belongs to a GPU or slice follows it:
 *
 *     driver 570.86.15
 *     init CODE                                 what nvmlInit answers (18: driver/library mismatch)
 *     gpu UUID TOTAL_MIB USED_MIB UTIL NAME…    its index is its place
 *     error CODE                                of the GPU above: its calls fail so (15, lost: even its handle)
 *     mig                                       the GPU above is in MIG mode
 *     slice UUID TOTAL_MIB USED_MIB NAME…       of the GPU above
 *     memory TOTAL FREE USED                    of the GPU above: bytes that it reports, whatever is true
 *     reserved MIB                              of the GPU above: what the driver keeps for itself
 *     mode N                                    of the GPU above: its compute mode (2: prohibited, 3: exclusive process)
 *     ecc N                                     of the GPU above: uncorrected errors; without it the card has no ECC
 *     remap 0|1                                 of the GPU above: whether remapping a row failed; without it: no such thing
 *     proc PID MIB|- C|G [SM]                   on the GPU or slice above; - is "not available"; SM: what it keeps busy, in %
 *     fail FUNCTION CODE [UUID]                 the call (without _vN) fails so
 *     hang FUNCTION [UUID]                      the call does not return for as long as the file says so
 *     slow FUNCTION MS [UUID]                   the call takes so long
 *     once FUNCTION MS [UUID]                   the same, but only the first such call of a process
 *     crash FUNCTION [UUID]                     the call dies by SIGSEGV
 *
 * FUNCTION may be *: every call of that card. What a call finds is the file as it was when the call began; calls of several threads
 * do not wait for each other.
 *
 * Built with -DPROCESS_VERSION=3, 2 or 1 it exports the process lists up to that version, and memory info v2 only above 1:
 * calls that an older driver does not have are not there at all. PROCESS_VERSION=4 is 3 with the longer records of drivers
 * 535.43 to 535.86. With -DINIT=18 its nvmlInit never works: a library that does not match the driver.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef PROCESS_VERSION
#define PROCESS_VERSION 3
#endif
#ifndef INIT
#define INIT 0
#endif
#define API __attribute__((visibility("default")))
#define MOST 256

typedef unsigned long long u64;
typedef int ret;
enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, LOST = 15, VERSION = 25 };

/* the structures of the driver's interface */
typedef struct { u64 total, free, used; } memory_v1;
typedef struct { unsigned version; u64 total, reserved, free, used; } memory_v2;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned pid; u64 used; } process_v1;
typedef struct { unsigned pid; u64 used; unsigned gpu_instance, compute_instance; } process_v2;
typedef struct { unsigned pid; u64 used; unsigned gpu_instance, compute_instance; u64 protected_memory; } process_wide;
typedef struct {
    char legacy_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char id[32];
} pci_info;

typedef struct { unsigned pid; u64 at; unsigned sm, memory, encoder, decoder; } process_load;

typedef struct { unsigned pid; u64 used; int graphics, sm; } process; /* sm: -1 for one that the driver has no sample of */
typedef struct {
    char uuid[80], name[96];
    u64 total, used, reserved, lies[3]; /* lies: total, free, used */
    unsigned util, mode;
    int ecc, remap; /* -1: the card does not say */
    int parent, place, mig, error; /* parent: -1 for a GPU; place: index of the GPU or in its parent */
    process procs[MOST];
    unsigned count;
} device;
typedef struct { char kind, function[64], uuid[80]; int code; } rule;

typedef struct { device devices[MOST]; rule rules[MOST]; int device_count, rule_count, init_code; char driver[80]; } state;

static state *newest;          /* never changed once it is here, and never freed: a call may still be in it */
static __thread state *now;    /* the one this call looks at */
static int ready;
static struct stat last;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over what outlives a call; held for no call's length */
/* a handle stays with its UUID, whatever place the card has later */
static char known[MOST][80];

static void add_device(const char *text, int parent, int place) {
    device *d = &now->devices[now->device_count];
    memset(d, 0, sizeof *d);
    d->parent = parent;
    d->place = place;
    d->ecc = d->remap = -1;
    if (parent < 0) sscanf(text, "gpu %79s %llu %llu %u %95[^\n]", d->uuid, &d->total, &d->used, &d->util, d->name);
    else sscanf(text, "slice %79s %llu %llu %95[^\n]", d->uuid, &d->total, &d->used, d->name);
    now->device_count++;
}

static void add_process(device *d, const char *text) {
    char mib[32] = "", kind = 'C';
    process *p = &d->procs[d->count];
    p->sm = -1;
    if (d->count == MOST || sscanf(text, "proc %u %31s %c %d", &p->pid, mib, &kind, &p->sm) < 2) return;
    p->used = mib[0] == '-' ? (u64)-1 : strtoull(mib, NULL, 10) << 20;
    p->graphics = kind == 'G';
    d->count++;
}

static void add_rule(const char *text) {
    rule *r = &now->rules[now->rule_count++];
    memset(r, 0, sizeof *r);
    r->kind = text[0];
    if (strchr("fso", r->kind)) sscanf(text, "%*s %63s %d %79s", r->function, &r->code, r->uuid);
    else sscanf(text, "%*s %63s %79s", r->function, r->uuid);
}

static void read_state(FILE *f) {
    char line[512];
    int gpu = -1, gpus = 0, slices = 0;
    strcpy(now->driver, "570.86.15");
    while (fgets(line, sizeof line, f) && now->device_count < MOST && now->rule_count < MOST) {
        device *d = now->device_count ? &now->devices[now->device_count - 1] : NULL;
        if (!strncmp(line, "gpu ", 4)) { gpu = now->device_count; slices = 0; add_device(line, -1, gpus++); }
        else if (!strncmp(line, "slice ", 6) && d) add_device(line, gpu, slices++);
        else if (!strncmp(line, "proc ", 5) && d) add_process(d, line);
        else if (!strncmp(line, "error ", 6) && d) d->error = atoi(line + 6);
        else if (!strncmp(line, "mig", 3) && d) d->mig = 1;
        else if (!strncmp(line, "memory ", 7) && d) sscanf(line, "memory %llu %llu %llu", &d->lies[0], &d->lies[1], &d->lies[2]);
        else if (!strncmp(line, "reserved ", 9) && d) d->reserved = strtoull(line + 9, NULL, 10);
        else if (!strncmp(line, "mode ", 5) && d) d->mode = (unsigned)atoi(line + 5);
        else if (!strncmp(line, "ecc ", 4) && d) d->ecc = atoi(line + 4);
        else if (!strncmp(line, "remap ", 6) && d) d->remap = atoi(line + 6);
        else if (!strncmp(line, "driver ", 7)) sscanf(line, "driver %79s", now->driver);
        else if (!strncmp(line, "init ", 5)) now->init_code = atoi(line + 5);
        else if (strchr("fhcso", line[0])) add_rule(line);
    }
}

/* each call begins with it */
static void load(void) {
    const char *path = getenv("FAKE_NVML_STATE");
    struct stat found;
    FILE *f;
    pthread_mutex_lock(&lock);
    int changed = path && !stat(path, &found) && (!newest || found.st_ino != last.st_ino || found.st_size != last.st_size
        || found.st_mtim.tv_sec != last.st_mtim.tv_sec || found.st_mtim.tv_nsec != last.st_mtim.tv_nsec);
    if (!newest) newest = calloc(1, sizeof *newest);
    if (changed && (f = fopen(path, "r"))) {
        last = found;
        now = calloc(1, sizeof *now);
        read_state(f);
        fclose(f);
        newest = now;
    }
    now = newest;
    pthread_mutex_unlock(&lock);
}

static device *by_handle(void *handle) {
    size_t k = (size_t)((char (*)[80])handle - known);
    if (k >= MOST) return NULL;
    for (int i = 0; i < now->device_count; i++) if (!strcmp(now->devices[i].uuid, known[k])) return &now->devices[i];
    return NULL;
}

static void *handle_of(const device *d) {
    void *found = NULL;
    pthread_mutex_lock(&lock);
    for (int k = 0; k < MOST && !found; k++) {
        if (!known[k][0]) strcpy(known[k], d->uuid);
        if (!strcmp(known[k], d->uuid)) found = known[k];
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void wait_ms(int ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&t, &t));
}

static int first_time(const rule *r) {
    static rule done[MOST];
    static int count;
    int first = 1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++) first &= strcmp(done[i].function, r->function) || strcmp(done[i].uuid, r->uuid);
    if (first && count < MOST) done[count++] = *r;
    pthread_mutex_unlock(&lock);
    return first;
}

static void hang(const rule *r) {
    state *then = now;
    for (int still = 1; still;) {
        wait_ms(10);
        load();
        still = 0;
        for (int i = 0; i < now->rule_count; i++) still |= !memcmp(&now->rules[i], r, sizeof *r);
    }
    now = then;
}

/* what the rules say of this call; they come before everything else */
static ret ruled(const char *function, const device *d) {
    for (int i = 0; i < now->rule_count; i++) {
        const rule *r = &now->rules[i];
        if ((strcmp(r->function, "*") || !d) && strcmp(r->function, function)) continue;
        if (r->uuid[0] && (!d || strcmp(r->uuid, d->uuid))) continue;
        if (r->kind == 'h') { hang(r); continue; }
        if (r->kind == 'c') raise(SIGSEGV);
        if (r->kind == 's' || (r->kind == 'o' && first_time(r))) wait_ms(r->code);
        if (strchr("so", r->kind)) continue;
        return r->code;
    }
    return OK;
}

static ret enter(const char *function) {
    load();
    return ready ? ruled(function, NULL) : UNINITIALIZED;
}

/* finds the device of a handle; `told` calls (UUID, name) also work on a card with an error other than lost */
static ret find(const char *function, void *handle, device **d, int told) {
    load();
    if (!ready) return UNINITIALIZED;
    *d = by_handle(handle);
    if (!*d) return LOST;
    ret code = ruled(function, *d);
    if (code) return code;
    return (*d)->error == LOST || !told ? (*d)->error : OK;
}

#define DEVICE(told) device *d; ret code = find(__func__, handle, &d, told); if (code) return code

static ret text(char *out, unsigned room, const char *value) {
    if (strlen(value) + 1 > room) return TOO_SMALL;
    strcpy(out, value);
    return OK;
}

static int gpu_count(void) {
    int n = 0;
    for (int i = 0; i < now->device_count; i++) n += now->devices[i].parent < 0;
    return n;
}

API ret nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    load();
    ret code = ruled("nvmlInit", NULL);
    if (code || now->init_code || INIT) return code ? code : now->init_code ? now->init_code : INIT;
    ready++;
    return OK;
}
API ret nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
API ret nvmlShutdown(void) { if (!ready) return UNINITIALIZED; ready--; return OK; }
API const char *nvmlErrorString(ret code) { static __thread char s[40]; snprintf(s, sizeof s, "stand-in error %d", code); return s; }
API ret nvmlSystemGetDriverVersion(char *s, unsigned n) { ret code = enter(__func__); return code ? code : text(s, n, now->driver); }
API ret nvmlSystemGetNVMLVersion(char *s, unsigned n) { ret code = enter(__func__); return code ? code : text(s, n, "12.570.86.15"); }

API ret nvmlDeviceGetCount_v2(unsigned *n) {
    ret code = enter("nvmlDeviceGetCount");
    if (!code) *n = (unsigned)gpu_count();
    return code;
}

API ret nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    load();
    if (!ready) return UNINITIALIZED;
    for (int i = 0; i < now->device_count; i++) {
        const device *d = &now->devices[i];
        if (d->parent >= 0 || d->place != (int)index) continue;
        ret code = ruled("nvmlDeviceGetHandleByIndex", d);
        if (code || d->error == LOST) return code ? code : LOST;
        *handle = handle_of(d);
        return OK;
    }
    return INVALID;
}

API ret nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    ret code = enter(__func__);
    for (int i = 0; !code && i < now->device_count; i++)
        if (!strcmp(now->devices[i].uuid, uuid)) { *handle = handle_of(&now->devices[i]); return OK; }
    return code ? code : NOT_FOUND;
}

API ret nvmlDeviceGetUUID(void *handle, char *s, unsigned n) { DEVICE(1); return text(s, n, d->uuid); }
API ret nvmlDeviceGetName(void *handle, char *s, unsigned n) { DEVICE(1); return text(s, n, d->name); }
API ret nvmlDeviceGetIndex(void *handle, unsigned *x) { DEVICE(1); *x = (unsigned)d->place; return OK; }

API ret nvmlDeviceGetPciInfo_v3(void *handle, pci_info *p) {
    DEVICE(0);
    memset(p, 0, sizeof *p);
    p->bus = 0x10 + (unsigned)d->place;
    snprintf(p->id, sizeof p->id, "00000000:%02X:00.0", p->bus);
    snprintf(p->legacy_id, sizeof p->legacy_id, "0000:%02X:00.0", p->bus);
    return OK;
}

API ret nvmlDeviceGetMemoryInfo(void *handle, memory_v1 *m) {
    DEVICE(0);
    m->total = d->total << 20;
    m->used = (d->used + d->reserved) << 20; /* version 1 knows no difference */
    m->free = m->total - m->used;
    if (d->lies[0]) *m = (memory_v1){d->lies[0], d->lies[1], d->lies[2]};
    return OK;
}

#if PROCESS_VERSION > 1
API ret nvmlDeviceGetMemoryInfo_v2(void *handle, memory_v2 *m) {
    if (m->version != (sizeof *m | 2u << 24)) return VERSION;
    device *d;
    ret code = find("nvmlDeviceGetMemoryInfo", handle, &d, 0);
    if (code) return code;
    m->total = d->total << 20;
    m->reserved = d->reserved << 20;
    m->used = d->used << 20;
    m->free = m->total - m->reserved - m->used;
    if (d->lies[0]) { m->total = d->lies[0]; m->free = d->lies[1]; m->used = d->lies[2]; }
    return OK;
}
#endif

API ret nvmlDeviceGetUtilizationRates(void *handle, utilization *u) {
    DEVICE(0);
    if (d->mig || d->parent >= 0) return NOT_SUPPORTED;
    u->gpu = d->util;
    u->memory = d->util / 2;
    return OK;
}

/* samples since then, the last of each process behind an older one */
API ret nvmlDeviceGetProcessUtilization(void *handle, process_load *out, unsigned *room, u64 since) {
    DEVICE(0);
    if (d->mig || d->parent >= 0) return NOT_SUPPORTED;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    u64 at = (u64)t.tv_sec * 1000000 + (u64)t.tv_nsec / 1000;
    unsigned wanted = 0, k = 0;
    for (unsigned i = 0; i < d->count; i++) wanted += 2 * (d->procs[i].sm >= 0);
    if (!wanted || at <= since) return NOT_FOUND;
    if (!out || *room < wanted) { *room = wanted; return TOO_SMALL; }
    for (unsigned i = 0; i < d->count; i++) {
        if (d->procs[i].sm < 0) continue;
        out[k++] = (process_load){d->procs[i].pid, at, (unsigned)d->procs[i].sm, 0, 0, 0};
        out[k++] = (process_load){d->procs[i].pid, at - 1000000, 1, 0, 0, 0};
    }
    *room = k;
    return OK;
}

/* sensors belong to whole cards */
#define SENSOR(name, value) API ret name(void *handle, unsigned *x) { DEVICE(0); if (d->parent >= 0) return NOT_SUPPORTED; *x = (value); return OK; }
SENSOR(nvmlDeviceGetPowerUsage, 60000 + 2000 * d->util)
SENSOR(nvmlDeviceGetEnforcedPowerLimit, 300000)
SENSOR(nvmlDeviceGetFanSpeed, 30)
API ret nvmlDeviceGetClockInfo(void *handle, unsigned clock, unsigned *x) {
    DEVICE(0);
    if (d->parent >= 0) return NOT_SUPPORTED;
    *x = clock == 2 ? 10501 : 1980;
    return OK;
}
SENSOR(nvmlDeviceGetMaxMigDeviceCount, 7)
API ret nvmlDeviceGetTemperature(void *handle, unsigned sensor, unsigned *x) {
    (void)sensor;
    DEVICE(0);
    if (d->parent >= 0) return NOT_SUPPORTED;
    *x = 35 + d->util * 4 / 10;
    return OK;
}

SENSOR(nvmlDeviceGetComputeMode, d->mode)
API ret nvmlDeviceGetTotalEccErrors(void *handle, unsigned type, unsigned counter, u64 *x) {
    DEVICE(0);
    if (d->ecc < 0) return NOT_SUPPORTED;
    *x = type == 1 && counter == 0 ? (u64)d->ecc : 0; /* uncorrected, volatile */
    return OK;
}
API ret nvmlDeviceGetRemappedRows(void *handle, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
    DEVICE(0);
    if (d->remap < 0) return NOT_SUPPORTED;
    *corrected = *uncorrected = *pending = 0;
    *failed = (unsigned)d->remap;
    return OK;
}

API ret nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
    DEVICE(0);
    *current = *pending = (unsigned)d->mig;
    return OK;
}
API ret nvmlDeviceIsMigDeviceHandle(void *handle, unsigned *x) { DEVICE(1); *x = d->parent >= 0; return OK; }
API ret nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **slice) {
    DEVICE(0);
    for (int i = 0; i < now->device_count; i++) {
        const device *s = &now->devices[i];
        if (s->parent == (int)(d - now->devices) && s->place == (int)index) { *slice = handle_of(s); return OK; }
    }
    return NOT_FOUND;
}
API ret nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *handle, void **parent) {
    DEVICE(1);
    if (d->parent < 0) return INVALID;
    *parent = handle_of(&now->devices[d->parent]);
    return OK;
}

static ret processes(const char *function, void *handle, unsigned *room, void *out, int graphics, int version) {
    device *d;
    ret code = find(function, handle, &d, 0);
    if (code) return code;
    unsigned wanted = 0, k = 0;
    for (unsigned i = 0; i < d->count; i++) wanted += d->procs[i].graphics == graphics;
    if (*room < wanted) { *room = wanted; return TOO_SMALL; }
    for (unsigned i = 0; i < d->count; i++) {
        const process *p = &d->procs[i];
        if (p->graphics != graphics) continue;
        if (version == 1) ((process_v1 *)out)[k] = (process_v1){p->pid, p->used};
        else if (version == 4) ((process_wide *)out)[k] = (process_wide){p->pid, p->used, ~0u, ~0u, 0};
        else ((process_v2 *)out)[k] = (process_v2){p->pid, p->used, ~0u, ~0u};
        k++;
    }
    *room = k;
    return OK;
}
#define LIST(name, suffix, graphics, version) \
    API ret name##suffix(void *handle, unsigned *room, void *out) { return processes(#name, handle, room, out, graphics, version); }
LIST(nvmlDeviceGetComputeRunningProcesses, , 0, 1)
LIST(nvmlDeviceGetGraphicsRunningProcesses, , 1, 1)
#if PROCESS_VERSION > 1
LIST(nvmlDeviceGetComputeRunningProcesses, _v2, 0, 2)
LIST(nvmlDeviceGetGraphicsRunningProcesses, _v2, 1, 2)
#endif
#if PROCESS_VERSION > 2
LIST(nvmlDeviceGetComputeRunningProcesses, _v3, 0, PROCESS_VERSION)
LIST(nvmlDeviceGetGraphicsRunningProcesses, _v3, 1, PROCESS_VERSION)
#endif
