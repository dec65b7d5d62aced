/* threads.c: how many threads, and how they share work.
 *
 * The default is what the process may really use: its affinity mask, and under a container the CPU quota of
 * its control group, rounded up. Which thread runs a task never changes what it computes.
 */
#include "backend/cpu/cpu.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

static int affinity(void) {
    cpu_set_t set; /* machines with more than 1024 processors count as 1024 */
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return 1;
    }
    int count = CPU_COUNT(&set);
    return count > 0 ? count : 1;
}

/* The first line of a small file of the kernel's; 0 when there is none. */
static int read_line(const char *path, char *line, size_t size) {
    FILE *file = fopen(path, "r");
    if (!file) {
        return 0;
    }
    int got = fgets(line, (int)size, file) != NULL;
    fclose(file);
    return got;
}

/* Processors of quota/period, rounded up; 0: no limit. */
static int quota_cores(double quota, double period) {
    if (!(quota > 0) || !(period > 0) || quota / period > 1e6) {
        return 0;
    }
    int whole = (int)(quota / period);
    return whole + (quota > whole * period);
}

/* The limit of the process's own control group (version 2) and of its parents up to the root. */
static int quota_v2(void) {
    char line[1024], group[1024], path[2048];
    int least = 0;
    FILE *file = fopen("/proc/self/cgroup", "r");
    if (!file) {
        return 0;
    }
    group[0] = 0;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "0::", 3) == 0) {
            snprintf(group, sizeof group, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
        }
    }
    fclose(file);
    for (;;) {
        double quota = 0, period = 0;
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
        if (read_line(path, line, sizeof line) && sscanf(line, "%lf %lf", &quota, &period) == 2) {
            int cores = quota_cores(quota, period);
            least = cores && (!least || cores < least) ? cores : least;
        }
        char *slash = strrchr(group, '/');
        if (!slash) {
            return least;
        }
        *slash = 0;
    }
}

static int quota_v1(void) {
    char line[64];
    double quota = 0, period = 0;
    if (!read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof line) ||
        sscanf(line, "%lf", &quota) != 1 ||
        !read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", line, sizeof line) ||
        sscanf(line, "%lf", &period) != 1) {
        return 0;
    }
    return quota_cores(quota, period);
}

int lt_cpu_cores(void) {
    int cores = affinity(), limits[2] = {quota_v2(), quota_v1()};
    for (int i = 0; i < 2; i++) {
        cores = limits[i] && limits[i] < cores ? limits[i] : cores;
    }
    return cores;
}

void lt_cpu_parallel(const lt_cpu *cpu, int count, lt_cpu_task_fn run, void *arg) {
    lt_cpu_pool_run(cpu->pool, cpu->threads - 1, count, run, arg);
}
