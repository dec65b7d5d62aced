/* scratch_folder.h: a folder for a test, and its end with everything in it. */
#ifndef SCRATCH_FOLDER_H
#define SCRATCH_FOLDER_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* 0, or -1 when it cannot be made. mkdtemp puts a name of its own in the place of the X. */
static inline int scratch_folder_make(char folder[40]) {
    strcpy(folder, "/tmp/latent-test-XXXXXX");
    return mkdtemp(folder) ? chmod(folder, 0755) : -1;
}

static inline int scratch_folder_entry(const char *path, const struct stat *info, int kind, struct FTW *at) {
    (void)info, (void)kind, (void)at;
    return remove(path);
}

static inline int scratch_folder_remove(const char *folder) {
    return nftw(folder, scratch_folder_entry, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
