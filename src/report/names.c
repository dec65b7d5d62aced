/* names.c: what a run and a net are called, and when two names mean the same. */
#include "report/load.h"

#include <string.h>

/* "autoencoder" of "nets/autoencoder.net": a ladder keeps the name as it was typed. */
static size_t plain_name(const char **name) {
    const char *slash = strrchr(*name, '/');
    *name = slash ? slash + 1 : *name;
    size_t length = strlen(*name);
    return length > 4 && strcmp(*name + length - 4, ".net") == 0 ? length - 4 : length;
}

int lt_report_ladder_fits(const lt_report_run *run) {
    const char *net = lt_get_text(run->part[LT_PART_LADDER], "net");
    const char *own = lt_get_text(run->part[LT_PART_CONFIG], "net");
    if (!net || !own) {
        return 1;
    }
    size_t length = plain_name(&net);
    return length == plain_name(&own) && strncmp(net, own, length) == 0;
}

static int shares_name(const lt_report_run *runs, int count, int at) {
    for (int r = 0; r < count; r++) {
        if (r != at && strcmp(runs[r].name, runs[at].name) == 0) {
            return 1;
        }
    }
    return 0;
}

void lt_report_name(lt_report_run *runs, int count) {
    for (int longer = 1; longer;) {
        int shared[LT_REPORT_RUNS_MAX] = {0};
        longer = 0;
        for (int r = 0; r < count; r++) {
            shared[r] = shares_name(runs, count, r);
        }
        for (int r = 0; r < count; r++) {
            const char *at = runs[r].name;
            if (!shared[r] || at == runs[r].folder) {
                continue;
            }
            /* One part of the path more: back over the '/', then to the one before it. */
            for (at--; at > runs[r].folder && at[-1] != '/'; at--) {
            }
            runs[r].name = at;
            longer = 1;
        }
    }
}
