/* test_file.c: a file is the old one or the new one, and every failure is a sentence. */
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void assert_holds(scratch *s, const char *path, const char *text) {
    char *data = NULL;
    size_t bytes = 0;
    assert_int_equal(lt_file_read(s->ctx, path, 1 << 20, &data, &bytes), LATENT_OK);
    assert_int_equal(bytes, strlen(text));
    assert_string_equal(data, text); /* also: a 0 byte follows the last one */
    free(data);
}

static void test_write_and_replace(void **state) {
    scratch *s = *state;
    const char *path = scratch_path(s, "a");
    assert_int_equal(lt_file_write(s->ctx, path, "first, long", 11), LATENT_OK);
    assert_holds(s, path, "first, long");
    assert_int_equal(lt_file_write(s->ctx, path, "2nd", 3), LATENT_OK);
    assert_holds(s, path, "2nd");
    assert_int_equal(lt_file_write(s->ctx, path, "", 0), LATENT_OK);
    assert_holds(s, path, "");
    /* A file that was private stays private. */
    struct stat info;
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(lt_file_write(s->ctx, path, "3rd", 3), LATENT_OK);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(scratch_entries(s->folder), 1);
}

/* Puts of every size around the buffer's arrive in order. */
static void test_writer_sizes(void **state) {
    static const size_t sizes[] = {1, 65535, 1, 65536, 0, 65537, 3, 200000, 65533, 2, 1};
    scratch *s = *state;
    const char *path = scratch_path(s, "a");
    lt_writer *writer = NULL;
    char *data = NULL, piece[200000];
    size_t bytes = 0, at = 0;
    assert_int_equal(lt_writer_open(s->ctx, path, &writer), LATENT_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t k = 0; k < sizes[i]; k++, at++) {
            piece[k] = (char)(at % 251);
        }
        assert_int_equal(lt_writer_put(s->ctx, writer, piece, sizes[i]), LATENT_OK);
    }
    assert_false(lt_file_exists(path)); /* nothing to see before the commit */
    assert_int_equal(lt_writer_commit(s->ctx, writer), LATENT_OK);
    assert_int_equal(lt_file_read(s->ctx, path, at, &data, &bytes), LATENT_OK);
    assert_int_equal(bytes, at);
    for (size_t i = 0; i < bytes; i++) {
        assert_int_equal(data[i], (char)(i % 251));
    }
    free(data);
}

static void test_abort(void **state) {
    scratch *s = *state;
    const char *path = scratch_file(s, "a", "old", 3);
    lt_writer *writer = NULL;
    assert_int_equal(lt_writer_open(s->ctx, path, &writer), LATENT_OK);
    assert_int_equal(lt_writer_put(s->ctx, writer, "new", 3), LATENT_OK);
    lt_writer_abort(writer);
    lt_writer_abort(NULL);
    assert_holds(s, path, "old");
    assert_int_equal(scratch_entries(s->folder), 1);
}

/* The file that a link names is replaced, not the link; a temporary file left by a dead process with our
 * number is no obstacle, and where it is a link, its target is not touched. */
static void test_links(void **state) {
    scratch *s = *state;
    char stale[160];
    const char *path = scratch_file(s, "a", "old", 3), *link = scratch_path(s, "link");
    const char *other = scratch_file(s, "other", "other", 5);
    assert_int_equal(symlink("a", link), 0);
    snprintf(stale, sizeof stale, "%s.tmp.%ld", path, (long)getpid());
    assert_int_equal(symlink("other", stale), 0);
    assert_int_equal(lt_file_write(s->ctx, link, "new", 3), LATENT_OK);
    struct stat info;
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_holds(s, path, "new");
    assert_holds(s, other, "other");
    assert_int_equal(scratch_entries(s->folder), 3);
}

/* What a killed process left is removed; what is another's, or not ours by its name, is not. */
static void test_sweep(void **state) {
    scratch *s = *state;
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    char left[64], others[5][64];
    snprintf(left, sizeof left, "a.npy.tmp.%ld", (long)child);
    snprintf(others[0], sizeof others[0], "a.npy.tmp.%ld", (long)getppid());
    snprintf(others[1], sizeof others[1], "b.npy.tmp.%ld", (long)child);
    snprintf(others[2], sizeof others[2], "a.npy.tmp.%ldx", (long)child);
    snprintf(others[3], sizeof others[3], "a.npy.tmp.");
    snprintf(others[4], sizeof others[4], "a.npy");
    scratch_file(s, left, "x", 1);
    for (int i = 0; i < 5; i++) {
        scratch_file(s, others[i], "x", 1);
    }
    lt_file_sweep(scratch_path(s, "a.npy"));
    assert_false(lt_file_exists(scratch_path(s, left)));
    assert_int_equal(scratch_entries(s->folder), 5);
    scratch_file(s, left, "x", 1);
    assert_int_equal(lt_file_write(s->ctx, scratch_path(s, "a.npy"), "new", 3), LATENT_OK);
    assert_int_equal(scratch_entries(s->folder), 5);
    lt_file_sweep("nowhere/at/all");
}

static void assert_fingerprints(scratch *s, const char *name, int same, const char was[33]) {
    char is[33];
    assert_int_equal(latent_file_fingerprint(s->ctx, scratch_path(s, name), is), LATENT_OK);
    assert_int_equal(strlen(is), 32);
    assert_int_equal(strcmp(was, is) == 0, same);
}

/* A small file by every byte; a large one by its length, its ends and pieces between. */
static void test_fingerprint(void **state) {
    scratch *s = *state;
    enum { LARGE = 3 << 20 };
    char small[33], large[33], *bytes = calloc(LARGE + 1, 1);
    scratch_file(s, "small", bytes, 70000);
    assert_int_equal(latent_file_fingerprint(s->ctx, scratch_path(s, "small"), small), LATENT_OK);
    scratch_file(s, "large", bytes, LARGE);
    assert_int_equal(latent_file_fingerprint(s->ctx, scratch_path(s, "large"), large), LATENT_OK);
    assert_fingerprints(s, "large", 1, large);
    static const size_t places[] = {0, 1, 65535, 65536, 69999};
    for (int i = 0; i < 5; i++) {
        bytes[places[i]] = 1;
        scratch_file(s, "small", bytes, 70000);
        assert_fingerprints(s, "small", 0, small);
        bytes[places[i]] = 0;
    }
    scratch_file(s, "small", bytes, 70000);
    assert_fingerprints(s, "small", 1, small);
    scratch_file(s, "large", bytes, LARGE + 1);
    assert_fingerprints(s, "large", 0, large);
    scratch_file(s, "large", bytes, LARGE - 1);
    assert_fingerprints(s, "large", 0, large);
    bytes[LARGE - 1] = 1;
    scratch_file(s, "large", bytes, LARGE);
    assert_fingerprints(s, "large", 0, large);
    free(bytes);
    assert_fails(s->ctx, latent_file_fingerprint(s->ctx, scratch_path(s, "none"), small), LATENT_ERROR_IO,
                 "none: cannot read: No such file");
    assert_fails(s->ctx, latent_file_fingerprint(s->ctx, s->folder, small), LATENT_ERROR_IO,
                 "cannot read: Is a directory");
}

static void test_targets_refused(void **state) {
    scratch *s = *state;
    lt_writer *writer = NULL;
    assert_fails(s->ctx, lt_writer_open(s->ctx, s->folder, &writer), LATENT_ERROR_IO,
                 "it is a folder; give the path");
    assert_null(writer);
    assert_fails(s->ctx, lt_file_write(s->ctx, "/dev/null", "x", 1), LATENT_ERROR_IO,
                 "/dev/null: cannot write: it is not a regular file");
    assert_fails(s->ctx, lt_file_write(s->ctx, scratch_path(s, "b/"), "x", 1), LATENT_ERROR_IO,
                 "ends in '/'");
    assert_fails(s->ctx, lt_file_write(s->ctx, "", "x", 1), LATENT_ERROR_ARGUMENT, "the path is empty");
    assert_fails(s->ctx, lt_file_write(s->ctx, scratch_path(s, "no/b"), "x", 1), LATENT_ERROR_IO,
                 "no/b: cannot write: No such file or directory; the old file, if any, is unchanged");
    assert_fails(s->ctx, latent_file_check(s->ctx, scratch_path(s, "no/b")), LATENT_ERROR_IO,
                 "no/b: cannot write: No such file or directory");
    assert_fails(s->ctx, latent_file_check(s->ctx, "/dev/null"), LATENT_ERROR_IO, "not a regular file");
    assert_int_equal(latent_file_check(s->ctx, scratch_path(s, "b")), LATENT_OK);
    assert_int_equal(scratch_entries(s->folder), 0); /* it leaves nothing */
}

/* A limit on the size of files behaves as a full disk does: write() fails half way. */
static void test_disk_full(void **state) {
    scratch *s = *state;
    const char *path = scratch_file(s, "a", "old", 3), *log = scratch_file(s, "log", "line\n", 5);
    char *large = calloc(1, 1 << 20);
    struct rlimit before;
    assert_non_null(large);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = 100000, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);

    latent_status once = lt_file_write(s->ctx, path, large, 1 << 20);
    char message[LT_MESSAGE_MAX];
    strcpy(message, s->ctx->message);
    lt_writer *writer = NULL;
    latent_status opened = lt_writer_open(s->ctx, path, &writer), put = LATENT_OK, again, commit;
    for (int i = 0; i < 20 && put == LATENT_OK; i++) {
        put = lt_writer_put(s->ctx, writer, large, 10000);
    }
    again = lt_writer_put(s->ctx, writer, large, 1);
    commit = lt_writer_commit(s->ctx, writer);
    /* All bytes still fit the buffer, so that only the commit finds out. */
    small.rlim_cur = 1000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    latent_status late = lt_file_write(s->ctx, path, large, 5000);
    memset(large, 'x', 5000);
    latent_status append = lt_file_append(s->ctx, log, large, 5000);

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    free(large);
    assert_int_equal(once, LATENT_ERROR_IO);
    assert_non_null(strstr(message, "/a: cannot write: File too large; the old file, if any, is unchanged"));
    assert_int_equal(opened, LATENT_OK);
    assert_int_equal(put, LATENT_ERROR_IO);
    assert_int_equal(again, LATENT_ERROR_IO);
    assert_int_equal(commit, LATENT_ERROR_IO);
    assert_int_equal(late, LATENT_ERROR_IO);
    assert_int_equal(append, LATENT_ERROR_IO);
    assert_says(s->ctx, "/log: cannot append: File too large");
    assert_holds(s, path, "old");
    assert_holds(s, log, "line\n"); /* no half line */
    assert_int_equal(scratch_entries(s->folder), 2);
}

/* /dev/full answers every write with ENOSPC. */
static void test_append(void **state) {
    scratch *s = *state;
    const char *path = scratch_path(s, "log");
    assert_int_equal(lt_file_append(s->ctx, path, "one\n", 4), LATENT_OK);
    assert_int_equal(lt_file_append(s->ctx, path, "two\n", 4), LATENT_OK);
    assert_holds(s, path, "one\ntwo\n");
    assert_fails(s->ctx, lt_file_append(s->ctx, "/dev/full", "x\n", 2), LATENT_ERROR_IO,
                 "/dev/full: cannot append: No space left on device");
    assert_fails(s->ctx, lt_file_append(s->ctx, s->folder, "x\n", 2), LATENT_ERROR_IO,
                 "cannot append: Is a directory");
}

static void test_read_refused(void **state) {
    scratch *s = *state;
    char *data = NULL;
    size_t bytes = 0;
    const char *path = scratch_file(s, "a", "12345", 5);
    assert_int_equal(lt_file_read(s->ctx, path, 5, &data, &bytes), LATENT_OK);
    free(data);
    assert_fails(s->ctx, lt_file_read(s->ctx, path, 4, &data, &bytes), LATENT_ERROR_FORMAT,
                 "/a: larger than 4 bytes");
    assert_null(data);
    assert_fails(s->ctx, lt_file_read(s->ctx, s->folder, 9, &data, &bytes), LATENT_ERROR_IO,
                 "cannot read: it is a folder");
    assert_fails(s->ctx, lt_file_read(s->ctx, scratch_path(s, "none"), 9, &data, &bytes), LATENT_ERROR_IO,
                 "/none: cannot read: No such file or directory");
    /* No end and no size: the limit stops it. */
    assert_fails(s->ctx, lt_file_read(s->ctx, "/dev/zero", 300000, &data, &bytes), LATENT_ERROR_FORMAT,
                 "/dev/zero: larger than 300000 bytes");
    /* A size of 0 that is not true. */
    assert_int_equal(lt_file_read(s->ctx, "/proc/self/status", SIZE_MAX, &data, &bytes), LATENT_OK);
    assert_non_null(strstr(data, "Name:"));
    assert_int_equal(strlen(data), bytes);
    free(data);
}

static void *feed(void *path) {
    char piece[1000];
    memset(piece, 'p', sizeof piece);
    int fd = open(path, O_WRONLY);
    for (int i = 0; i < 100; i++) {
        if (write(fd, piece, sizeof piece) != sizeof piece) {
            break;
        }
    }
    close(fd);
    return NULL;
}

static void test_read_pipe(void **state) {
    scratch *s = *state;
    char path[128], *data = NULL;
    size_t bytes = 0;
    pthread_t thread;
    strcpy(path, scratch_path(s, "pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&thread, NULL, feed, path), 0);
    assert_int_equal(lt_file_read(s->ctx, path, SIZE_MAX, &data, &bytes), LATENT_OK);
    pthread_join(thread, NULL);
    assert_int_equal(bytes, 100000);
    assert_int_equal(data[99999], 'p');
    assert_int_equal(data[100000], 0);
    free(data);
}

static void test_folders(void **state) {
    scratch *s = *state;
    assert_int_equal(lt_folder_create(s->ctx, scratch_path(s, "a//b/c/")), LATENT_OK);
    assert_true(lt_folder_exists(scratch_path(s, "a/b/c")));
    assert_int_equal(lt_folder_create(s->ctx, scratch_path(s, "a/b/c")), LATENT_OK);
    assert_int_equal(lt_folder_create(s->ctx, "/"), LATENT_OK);
    scratch_file(s, "a/file", "", 0);
    assert_true(lt_file_exists(scratch_path(s, "a/file")));
    assert_false(lt_folder_exists(scratch_path(s, "a/file")));
    assert_false(lt_file_exists(scratch_path(s, "a")));
    assert_false(lt_file_exists(scratch_path(s, "none")));
    assert_fails(s->ctx, lt_folder_create(s->ctx, scratch_path(s, "a/file/b")), LATENT_ERROR_IO,
                 "a/file is a file; remove it or choose another path");
    assert_fails(s->ctx, lt_folder_create(s->ctx, scratch_path(s, "a/file")), LATENT_ERROR_IO,
                 "a/file is a file");
    assert_fails(s->ctx, lt_folder_create(s->ctx, ""), LATENT_ERROR_ARGUMENT, "the path is empty");
    assert_fails(s->ctx, lt_folder_create(s->ctx, "/proc/none/b"), LATENT_ERROR_IO,
                 "/proc/none/b: cannot create the folder /proc/none: No such file or directory");
}

/* In a child that is nobody, because root may write anywhere. */
static void test_no_permission(void **state) {
    scratch *s = *state;
    const char *folder = scratch_path(s, "a/b"), *file = scratch_path(s, "f");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (chmod(s->folder, 0555) != 0 || (geteuid() == 0 && setuid(65534) != 0)) {
            _exit(9);
        }
        if (lt_folder_create(s->ctx, folder) != LATENT_ERROR_IO ||
            !strstr(s->ctx->message, "/a: Permission denied")) {
            _exit(1);
        }
        if (lt_file_write(s->ctx, file, "x", 1) != LATENT_ERROR_IO ||
            !strstr(s->ctx->message, "/f: cannot write: Permission denied")) {
            _exit(2);
        }
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(s->folder, 0755), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_join(void **state) {
    static const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}, {"", "b", "b"}, {"a/b", "c.d", "a/b/c.d"}};
    scratch *s = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path = NULL;
        assert_int_equal(lt_path_join(s->ctx, cases[i][0], cases[i][1], &path), LATENT_OK);
        assert_string_equal(path, cases[i][2]);
        free(path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_write_and_replace),
        SCRATCH_TEST(test_writer_sizes),
        SCRATCH_TEST(test_abort),
        SCRATCH_TEST(test_links),
        SCRATCH_TEST(test_sweep),
        SCRATCH_TEST(test_fingerprint),
        SCRATCH_TEST(test_targets_refused),
        SCRATCH_TEST(test_disk_full),
        SCRATCH_TEST(test_append),
        SCRATCH_TEST(test_read_refused),
        SCRATCH_TEST(test_read_pipe),
        SCRATCH_TEST(test_folders),
        SCRATCH_TEST(test_no_permission),
        SCRATCH_TEST(test_join),
    };
    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
