/* http_server.h: a web server for tests: a forked child on 127.0.0.1 that serves one block of memory at every
 * path and misbehaves as told. What it saw lies in memory that both processes share.
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct http_plan {
    const unsigned char *bytes;
    size_t length;
    size_t cut;      /* the first answer breaks off after so many bytes; 0: it does not */
    int status;      /* answer with this error; 0: with the bytes */
    int no_range;    /* 1: answers every request with all of it */
    int no_length;   /* 1: no Content-Length, the end of the connection ends it */
    int wrong_range; /* 1: answers a range with another one */
    int silent;      /* 1: accepts, reads the request and says nothing */
    int redirect;    /* 1: sends the client from any path to /there first */
} http_plan;

typedef struct http_log {
    int requests;
    long long start[16]; /* of the range asked for; -1 without one */
} http_log;

typedef struct http_server {
    pid_t pid;
    http_log *log;
    char url[64];
} http_server;

static inline void http_send(int client, const void *data, size_t bytes) {
    for (const char *at = data; bytes > 0;) {
        ssize_t n = send(client, at, bytes, MSG_NOSIGNAL);
        if (n <= 0) {
            return;
        }
        at += n;
        bytes -= (size_t)n;
    }
}

static inline void http_answer(const http_plan *plan, http_log *log, int client) {
    char text[4096] = "", head[512];
    size_t used = 0;
    for (ssize_t n = 1; n > 0 && !strstr(text, "\r\n\r\n") && used < sizeof text - 1; used += (size_t)n) {
        n = recv(client, text + used, sizeof text - 1 - used, 0);
        n = n < 0 ? 0 : n;
    }
    const char *range = strstr(text, "Range: bytes=");
    long long start = range ? atoll(range + 13) : -1;
    int number = log->requests < 16 ? log->requests : 15;
    log->start[number] = start;
    log->requests++;
    if (plan->silent) {
        sleep(60);
        return;
    }
    size_t from = start > 0 && !plan->no_range ? (size_t)start : 0, end = plan->length;
    int status = plan->status ? plan->status : from > 0 ? 206 : 200;
    if (plan->redirect && !strstr(text, "GET /there")) {
        http_send(client, "HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 5\r\n\r\nmoved", 62);
        return;
    }
    if (status == 206 && from >= plan->length) {
        status = 416;
    }
    if (plan->status || status == 416) {
        int n = snprintf(head, sizeof head, "HTTP/1.1 %d No\r\nContent-Length: 9\r\n\r\nno archive", status);
        http_send(client, head, (size_t)n);
        return;
    }
    int n = snprintf(head, sizeof head, "HTTP/1.1 %d Fine\r\nConnection: close\r\n", status);
    if (!plan->no_length) {
        n += snprintf(head + n, sizeof head - (size_t)n, "Content-Length: %zu\r\n", end - from);
    }
    if (status == 206) {
        n += snprintf(head + n, sizeof head - (size_t)n, "Content-Range: bytes %zu-%zu/%zu\r\n",
                      plan->wrong_range ? from + 1 : from, end - 1, end);
    }
    n += snprintf(head + n, sizeof head - (size_t)n, "\r\n");
    http_send(client, head, (size_t)n);
    if (plan->cut > 0 && number == 0) {
        end = plan->cut;
    }
    http_send(client, plan->bytes + from, end - from);
}

static inline void http_start(http_server *server, const http_plan *plan) {
    struct sockaddr_in address = {0};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%d/cifar.tar.gz", ntohs(address.sin_port));
    server->log = mmap(NULL, sizeof *server->log, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(server->log != MAP_FAILED);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0) {
        alarm(120); /* never outlives a test that died */
        for (;;) {
            int client = accept(listener, NULL, NULL);
            http_answer(plan, server->log, client);
            shutdown(client, SHUT_RDWR);
            close(client);
        }
    }
    close(listener);
}

static inline void http_stop(http_server *server) {
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    munmap(server->log, sizeof *server->log);
}

#endif
