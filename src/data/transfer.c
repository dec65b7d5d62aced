/* transfer.c: an HTTP transfer with libcurl that resumes.
 *
 * The request asks for the bytes from `have` on. The answer is judged when its first byte arrives: 206 with
 * the right start goes on, 200 means that the server sends everything and the file starts over, and anything
 * else is no archive. A server that announces another size than the archive's is stopped before a byte is
 * written. Time limits on connecting and on crawling see to it that it never hangs.
 */
#include "data/transfer.h"

#ifndef LATENT_HAVE_CURL

latent_status lt_transfer(latent_context *ctx, const char *url, const char *part, uint64_t size,
                          latent_transfer_fn progress, void *user) {
    (void)part, (void)size, (void)progress, (void)user;
    return lt_fail(
        ctx, LATENT_ERROR_UNSUPPORTED,
        "%s: this build has no libcurl and cannot transfer files; fetch the archive by other means and "
        "give its path instead, or rebuild with libcurl",
        url);
}

#else

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { CONNECT_SECONDS = 30, CRAWL_SECONDS = 30, CRAWL_BYTES = 64, REDIRECTS = 10 };

typedef enum fault { FAULT_NONE, FAULT_DISK, FAULT_SIZE, FAULT_TOO_MUCH, FAULT_STATUS, FAULT_RANGE } fault;

typedef struct transfer {
    latent_context *ctx;
    const char *url, *part;
    uint64_t size, have, asked; /* of the archive; in the file; the offset the request began at */
    latent_transfer_fn progress;
    void *user;
    CURL *curl;
    int fd;
    int judged;          /* the answer's first byte was seen */
    int64_t length;      /* Content-Length, or -1 */
    int64_t range_start; /* of Content-Range, or -1 */
    fault fault;
    int error;     /* errno of FAULT_DISK */
    long code;     /* HTTP status */
    long os_error; /* errno of a connection that failed, or 0 */
    char detail[CURL_ERROR_SIZE];
} transfer;

/* ---- What curl calls ---- */

static size_t on_header(char *line, size_t unit, size_t count, void *user) {
    transfer *t = user;
    size_t bytes = unit * count;
    char text[128];
    snprintf(text, sizeof text, "%.*s", (int)(bytes < sizeof text ? bytes : sizeof text - 1), line);
    if (strncmp(text, "HTTP/", 5) == 0) { /* a new answer, after a redirect */
        t->length = t->range_start = -1;
    } else if (strncasecmp(text, "Content-Length:", 15) == 0) {
        t->length = strtoll(text + 15, NULL, 10);
    } else if (strncasecmp(text, "Content-Range:", 14) == 0) {
        int64_t start = -1;
        t->range_start = sscanf(text + 14, " bytes %" SCNd64, &start) == 1 ? start : -1;
    }
    return bytes;
}

/* Decides what the answer is; a fault stops the transfer. */
static fault judge(transfer *t) {
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->code);
    if (t->code == 200 && t->have > 0) {
        lt_log(t->ctx, LATENT_LOG_INFO, "%s: the server cannot resume; the transfer starts over", t->url);
        if (ftruncate(t->fd, 0) != 0 || lseek(t->fd, 0, SEEK_SET) != 0) {
            t->error = errno;
            return FAULT_DISK;
        }
        t->have = 0;
    } else if (t->code == 206 && t->range_start != (int64_t)t->have) {
        return FAULT_RANGE;
    } else if (t->code != 200 && t->code != 206) {
        return FAULT_STATUS;
    }
    t->asked = t->have;
    if (t->length >= 0 && (uint64_t)t->length != t->size - t->have) {
        return FAULT_SIZE;
    }
    return FAULT_NONE;
}

static size_t on_data(char *data, size_t unit, size_t count, void *user) {
    transfer *t = user;
    size_t bytes = unit * count, written = 0;
    if (!t->judged) {
        t->judged = 1;
        t->fault = judge(t);
    }
    if (t->fault == FAULT_NONE && bytes > t->size - t->have) {
        t->fault = FAULT_TOO_MUCH;
    }
    while (t->fault == FAULT_NONE && written < bytes) {
        ssize_t n = write(t->fd, data + written, bytes - written);
        if (n > 0) {
            written += (size_t)n;
            t->have += (uint64_t)n;
        } else if (n == 0 || errno != EINTR) {
            t->error = n == 0 ? ENOSPC : errno;
            t->fault = FAULT_DISK;
        }
    }
    return t->fault == FAULT_NONE ? bytes : 0;
}

/* Called at least once a second, whether bytes come or not. */
static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
    transfer *t = user;
    (void)a, (void)b, (void)c, (void)d;
    if (t->progress) {
        t->progress(t->user, t->have, t->size);
    }
    return t->ctx->interrupted;
}

/* ---- One request ---- */

static void set_up(transfer *t, const char *range) {
    CURL *curl = t->curl;
    curl_easy_setopt(curl, CURLOPT_URL, t->url);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "latent/" LATENT_VERSION);
    curl_easy_setopt(curl, CURLOPT_RANGE, range);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)REDIRECTS);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)CRAWL_BYTES);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)CRAWL_SECONDS);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, t->detail);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
}

static CURLcode request(transfer *t) {
    char range[32];
    t->curl = curl_easy_init();
    if (!t->curl) {
        return CURLE_OUT_OF_MEMORY;
    }
    t->judged = 0;
    t->fault = FAULT_NONE;
    t->length = t->range_start = -1;
    t->code = 0;
    t->detail[0] = '\0';
    t->asked = t->have;
    snprintf(range, sizeof range, "%" PRIu64 "-", t->have);
    set_up(t, t->have > 0 ? range : NULL);
    CURLcode result = curl_easy_perform(t->curl);
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->code);
    curl_easy_getinfo(t->curl, CURLINFO_OS_ERRNO, &t->os_error);
    curl_easy_cleanup(t->curl);
    t->curl = NULL;
    return result;
}

/* The file does not fit what the server has: an answer of 416, or a range that is not the one asked for. */
static int must_start_over(const transfer *t, CURLcode result) {
    return t->asked > 0 &&
           (t->fault == FAULT_RANGE || (result == CURLE_HTTP_RETURNED_ERROR && t->code == 416));
}

/* ---- What is said about it ---- */

static latent_status explain_fault(const transfer *t) {
    switch (t->fault) {
    case FAULT_DISK:
        return lt_fail(t->ctx, LATENT_ERROR_IO,
                       "%s: cannot write: %s; %" PRIu64 " of %" PRIu64
                       " bytes are kept and the next try goes on there",
                       t->part, strerror(t->error), t->have, t->size);
    case FAULT_SIZE:
        return lt_fail(t->ctx, LATENT_ERROR_FORMAT,
                       "%s: the server offers %" PRIu64 " bytes, but the archive has %" PRIu64
                       "; this is another file, so check the address",
                       t->url, t->asked + (uint64_t)t->length, t->size);
    case FAULT_TOO_MUCH:
        return lt_fail(t->ctx, LATENT_ERROR_FORMAT,
                       "%s: the server sends more than the %" PRIu64
                       " bytes of the archive; this is another file, so check the address",
                       t->url, t->size);
    case FAULT_RANGE:
        return lt_fail(t->ctx, LATENT_ERROR_IO, "%s: the server answers with other bytes than were asked for",
                       t->url);
    default:
        return lt_fail(t->ctx, LATENT_ERROR_IO,
                       "%s: the server answers with HTTP status %ld; 200 or 206 is wanted", t->url, t->code);
    }
}

static latent_status explain(const transfer *t, CURLcode result) {
    if (t->fault != FAULT_NONE) {
        return explain_fault(t);
    }
    if (result == CURLE_OK && t->have == t->size) {
        return LATENT_OK;
    }
    if (result == CURLE_ABORTED_BY_CALLBACK || t->ctx->interrupted) {
        return lt_fail(t->ctx, LATENT_INTERRUPTED,
                       "%s: interrupted after %" PRIu64 " of %" PRIu64 " bytes; the next try goes on there",
                       t->url, t->have, t->size);
    }
    if (result == CURLE_HTTP_RETURNED_ERROR) {
        return lt_fail(t->ctx, LATENT_ERROR_IO,
                       "%s: the server answers with HTTP status %ld%s; check the address", t->url, t->code,
                       t->code == 404 ? " (not found)" : "");
    }
    if (t->have > t->asked || result == CURLE_OK || result == CURLE_PARTIAL_FILE) {
        return lt_fail(t->ctx, LATENT_ERROR_IO,
                       "%s: the transfer broke off after %" PRIu64 " of %" PRIu64
                       " bytes (%s); the next try goes on there",
                       t->url, t->have, t->size,
                       result == CURLE_OK ? "the server ended it" : curl_easy_strerror(result));
    }
    int unconnected = result == CURLE_COULDNT_CONNECT && t->os_error != 0;
    return lt_fail(t->ctx, LATENT_ERROR_IO, "%s: the transfer failed: %s%s%s", t->url,
                   t->detail[0] ? t->detail : curl_easy_strerror(result), unconnected ? ": " : "",
                   unconnected ? strerror((int)t->os_error) : "");
}

latent_status lt_transfer(latent_context *ctx, const char *url, const char *part, uint64_t size,
                          latent_transfer_fn progress, void *user) {
    transfer t;
    latent_status status = LATENT_OK;
    memset(&t, 0, sizeof t);
    t.ctx = ctx, t.url = url, t.part = part, t.size = size, t.progress = progress, t.user = user;
    t.fd = open(part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    off_t end = t.fd >= 0 ? lseek(t.fd, 0, SEEK_END) : -1;
    if (end >= 0 && (uint64_t)end > size) { /* left by something else */
        end = ftruncate(t.fd, 0) == 0 ? lseek(t.fd, 0, SEEK_SET) : -1;
    }
    if (end < 0) {
        status = lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot write: %s", part, strerror(errno));
        goto done;
    }
    t.have = (uint64_t)end;
    if (t.have < size) {
        curl_global_init(CURL_GLOBAL_DEFAULT);
        if (t.have > 0) {
            lt_log(ctx, LATENT_LOG_INFO, "%s: going on at byte %" PRIu64 " of %" PRIu64, url, t.have, size);
        }
        CURLcode result = request(&t);
        if (must_start_over(&t, result) && ftruncate(t.fd, 0) == 0 && lseek(t.fd, 0, SEEK_SET) == 0) {
            t.have = 0;
            result = request(&t);
        }
        status = explain(&t, result);
        curl_global_cleanup();
    }
done:
    if (t.fd >= 0) {
        close(t.fd);
        if (t.have == 0 || t.fault == FAULT_TOO_MUCH) {
            unlink(part);
        }
    }
    return status;
}

#endif
