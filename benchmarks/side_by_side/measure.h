/* The common half of the load generators: times in buckets, frames, sockets. Each program includes it once. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LENGTH = 4, CORRELATION = 8, HEADER = 8, READ_BYTES = 1 << 20 };

static uint8_t scratch[READ_BYTES];

/* ---- times: buckets of 1/64 of their value, so a quantile is exact to 1.6 % ---- */

enum { FRACTION = 64, BUCKETS = 64 * FRACTION };
static uint64_t buckets[BUCKETS], counted, longest;

static int bucket_of(uint64_t ns) {
    if (ns < FRACTION) return (int)ns;
    int exponent = 63 - __builtin_clzll(ns);
    return (exponent - 5) * FRACTION + (int)((ns >> (exponent - 6)) - FRACTION);
}

static uint64_t bucket_value(int bucket) {
    if (bucket < FRACTION) return (uint64_t)bucket;
    return (uint64_t)(bucket % FRACTION + FRACTION) << (bucket / FRACTION - 1);
}

static void count(uint64_t ns) {
    buckets[bucket_of(ns)]++;
    counted++;
    if (ns > longest) longest = ns;
}

static uint64_t quantile(double q) {
    uint64_t wanted = (uint64_t)(q * (double)counted), seen = 0;
    for (int i = 0; i < BUCKETS; i++)
        if ((seen += buckets[i]) > wanted) return bucket_value(i);
    return longest;
}

/* ---- frames and sockets ---- */

static void fail(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, errno ? strerror(errno) : "the broker's mistake, or ours");
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What is sent at once; `answered` is where in it the frame begins that the broker answers, usually 0. */
struct frame { uint8_t *bytes; size_t size, answered; };

static uint32_t u32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return ntohl(value);
}

static void put_u32(uint8_t *at, uint32_t value) {
    value = htonl(value);
    memcpy(at, &value, sizeof value);
}

static uint8_t *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (!file || fstat(fileno(file), &status)) fail(path);
    uint8_t *bytes = malloc((size_t)status.st_size);
    *size = (size_t)status.st_size;
    if (fread(bytes, 1, *size, file) != *size) fail(path);
    fclose(file);
    return bytes;
}

static int connect_to(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* ---- one request at a time ---- */

static void send_all(int fd, struct frame frame) {
    for (size_t sent = 0; sent < frame.size;) {
        ssize_t n = send(fd, frame.bytes + sent, frame.size - sent, MSG_NOSIGNAL);
        if (n <= 0) fail("send");
        sent += (size_t)n;
    }
}

static void receive_all(int fd, uint8_t *into, size_t size) {
    for (size_t got = 0; got < size;) {
        ssize_t n = recv(fd, into + got, size - got, 0);
        if (n == 0) errno = ECONNRESET;
        if (n <= 0) fail("recv");
        got += (size_t)n;
    }
}

/* Returns the size of the response, length included; it is in `scratch`. */
static uint64_t receive_response(int fd) {
    receive_all(fd, scratch, LENGTH);
    if (u32(scratch) > sizeof scratch - LENGTH) errno = EMSGSIZE, fail("a response");
    receive_all(fd, scratch + LENGTH, u32(scratch));
    return LENGTH + (uint64_t)u32(scratch);
}
