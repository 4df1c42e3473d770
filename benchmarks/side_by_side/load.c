/* A load of prepared requests on a Kafka broker, from one thread: what is measured is the broker, not this program.
 *
 * In C, because a request that is already made costs it about a microsecond of CPU, a twentieth of what a broker spends;
 * Python or a Java client would be the bottleneck, and on two cores also the broker's rival. Of Kafka it contains only the
 * frame (an i32 length) and the place of the correlation id; `load.py` makes the requests, starts it and reads its output.
 *
 *   load PORT REQUESTS CONNECTIONS IN_FLIGHT SECONDS RATE RESPONSE_BYTES WALKS TOGETHER    a load
 *   load PORT REQUESTS wake ROUNDS OFFSET_AT NEXT_OFFSET                                   end to end, see `wake`
 *   load PORT REQUESTS handshakes SECONDS                                                  new connections, see `handshakes`
 *
 * REQUESTS is a file of whole frames; connection i sends frame i mod n again and again, or, if WALKS is 1, all of them one
 * after the other, from a place of its own on, as a consumer goes through a log. RATE is requests a second over all
 * connections, 0 for as many as IN_FLIGHT allows; with a rate a request's time starts when it was due, not when it could
 * be sent, so that a stalled broker is charged for those that had to wait. TOGETHER frames are sent as one request, of which
 * only the last is answered, as of Produce with acks=0; usually 1. A response that is not RESPONSE_BYTES long, length
 * included, is an error: a refusal must not pass for a fast answer. One line of JSON is printed; times are in nanoseconds.
 */
#include "measure.h"
#include "transport.h"

enum { MOST_IN_FLIGHT = 64 };

/* Read the requests of a file: so many frames after one another are sent as one, and the last of them is answered. */
static struct frame *read_frames(const char *path, int together, int *frames) {
    size_t size;
    uint8_t *bytes = read_file(path, &size);
    struct frame *found = NULL;
    *frames = 0;
    for (size_t at = 0; at < size; at += found[*frames - 1].size) {
        size_t last = at;
        for (int i = 1; i < together; i++) last += LENGTH + u32(bytes + last);
        found = realloc(found, sizeof *found * (size_t)(*frames + 1));
        found[(*frames)++] = (struct frame){bytes + at, last + LENGTH + u32(bytes + last) - at, last - at};
    }
    return found;
}

/* ---- a load ---- */

struct connection {
    int fd;
    struct frame *request;
    size_t sent;                       /* of the request that is going out; 0 between two */
    uint32_t next_out, next_in;        /* correlation ids */
    uint64_t began[MOST_IN_FLIGHT];    /* by correlation id mod MOST_IN_FLIGHT: sent, or due */
    uint8_t header[HEADER];
    size_t received;                   /* of the response that is coming in, length included */
    uint64_t due;                      /* with a rate: when the next request should go */
    int waits_for_room;
};

static int in_flight, poller, frames, walks;
static struct frame *found;
static uint64_t interval, ends_at, response_bytes, finished;

static void watch(struct connection *c, int events, int how) {
    struct epoll_event event = {.events = (uint32_t)events, .data.ptr = c};
    if (epoll_ctl(poller, how, c->fd, &event)) fail("epoll_ctl");
}

static int may_begin(struct connection *c, uint64_t now) {
    return c->next_out - c->next_in < (uint32_t)in_flight && now < ends_at && (!interval || now >= c->due);
}

static void send_some(struct connection *c, uint64_t now) {
    while (c->sent || may_begin(c, now)) {
        if (!c->sent) {
            if (walks) c->request = c->request == found + frames - 1 ? found : c->request + 1;
            put_u32(c->request->bytes + c->request->answered + CORRELATION, c->next_out);
            c->began[c->next_out % MOST_IN_FLIGHT] = interval ? c->due : now;
            c->next_out++;
            c->due += interval;
        } else {
            /* connections may share a frame */
            put_u32(c->request->bytes + c->request->answered + CORRELATION, c->next_out - 1);
        }
        ssize_t n = send_part(c->fd, c->request->bytes + c->sent, c->request->size - c->sent);
        if (n < 0 && errno != EAGAIN) fail("send");
        if (n > 0) c->sent += (size_t)n;
        if (n > 0 && c->sent < c->request->size) continue; /* TLS sends record by record */
        if (c->sent < c->request->size) {
            if (!c->waits_for_room) watch(c, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD), c->waits_for_room = 1;
            return;
        }
        c->sent = 0;
    }
    if (c->waits_for_room) watch(c, EPOLLIN, EPOLL_CTL_MOD), c->waits_for_room = 0;
}

static void response_ended(struct connection *c, uint64_t now) {
    uint64_t size = LENGTH + (uint64_t)u32(c->header);
    errno = 0;
    if (u32(c->header + LENGTH) != c->next_in) fail("an answer out of order");
    if (size != response_bytes) fail("an answer of another length than the first: refused?");
    uint64_t began = c->began[c->next_in++ % MOST_IN_FLIGHT];
    if (now < ends_at) count(now - began), finished++;
    c->received = 0;
}

/* Returns whether there was anything. */
static int receive_some(struct connection *c, uint64_t now) {
    ssize_t n = receive_part(c->fd, scratch, sizeof scratch);
    if (n == 0) errno = ECONNRESET;
    if (n <= 0) {
        if (n < 0 && errno == EAGAIN) return 0;
        fail("recv");
    }
    for (size_t at = 0; at < (size_t)n;) {
        if (c->received < HEADER) {
            c->header[c->received++] = scratch[at++];
            if (c->received < HEADER) continue;
        }
        size_t left = LENGTH + (size_t)u32(c->header) - c->received, here = (size_t)n - at;
        if (here > left) here = left;
        c->received += here, at += here;
        if (here == left) response_ended(c, now);
    }
    return 1;
}

static void receive_all_there(struct connection *c) {
    uint64_t now = now_ns();
    while (receive_some(c, now) && pending(c->fd));
    send_some(c, now);
}

static uint64_t outstanding(struct connection *all, int connections) {
    uint64_t sum = 0;
    for (int i = 0; i < connections; i++) sum += all[i].next_out - all[i].next_in;
    return sum;
}

static void load(int port, const char *path, char **argument) {
    int connections = atoi(argument[0]);
    in_flight = atoi(argument[1]);
    double seconds = atof(argument[2]), rate = atof(argument[3]);
    response_bytes = strtoull(argument[4], NULL, 10);
    if (in_flight < 1 || in_flight > MOST_IN_FLIGHT) errno = ERANGE, fail("requests in flight");
    walks = atoi(argument[5]);
    found = read_frames(path, atoi(argument[6]), &frames);
    struct connection *all = calloc((size_t)connections, sizeof *all);
    poller = epoll_create1(0);
    for (int i = 0; i < connections; i++) {
        all[i].fd = open_connection(port);
        unblock(all[i].fd);
        all[i].request = found + (walks ? (size_t)frames * (size_t)i / (size_t)connections : (size_t)(i % frames));
        watch(&all[i], EPOLLIN, EPOLL_CTL_ADD);
    }
    if (rate > 0) interval = (uint64_t)(1e9 * connections / rate);
    uint64_t start = now_ns();
    ends_at = start + (uint64_t)(seconds * 1e9);
    for (int i = 0; i < connections; i++) {
        all[i].due = start + interval * (uint64_t)i / (uint64_t)connections;
        send_some(&all[i], start);
    }
    struct epoll_event events[256];
    for (uint64_t now = start; now < ends_at || outstanding(all, connections); now = now_ns()) {
        if (now > ends_at + 30000000000u) errno = ETIMEDOUT, fail("answers");
        int n = epoll_wait(poller, events, 256, interval && now < ends_at ? 0 : 100);
        for (int i = 0; i < n; i++) {
            if (events[i].events & EPOLLOUT) send_some(events[i].data.ptr, now_ns());
            if (events[i].events & ~(uint32_t)EPOLLOUT) receive_all_there(events[i].data.ptr);
        }
        if (interval)
            for (int i = 0; i < connections; i++) send_some(&all[i], now);
    }
    printf("{\"requests\": %lu, \"seconds\": %.6f, ", finished, seconds);
}

/* ---- end to end: a parked fetch, woken by a produce ---- */

/* Frame 0 is a Fetch of the end of the log, frame 1 a Produce of one record; the offset in the Fetch, at byte OFFSET_AT,
 * grows by one a round. A round: the Fetch, half a millisecond in which it is parked, the Produce; the time from then until
 * the Fetch is answered is counted. A tenth of the rounds, the first, are not. */
static void wake(int port, const char *path, char **argument) {
    uint64_t rounds = strtoull(argument[0], NULL, 10), offset_at = strtoull(argument[1], NULL, 10);
    uint64_t offset = strtoull(argument[2], NULL, 10), began = 0, elapsed = 0;
    found = read_frames(path, 1, &frames);
    int consumer = connect_to(port), producer = connect_to(port);
    struct timespec parked = {.tv_nsec = 500000};
    for (uint64_t round = 0; round < rounds; round++, offset++) {
        put_u32(found[0].bytes + offset_at, (uint32_t)(offset >> 32));
        put_u32(found[0].bytes + offset_at + 4, (uint32_t)offset);
        send_all(consumer, found[0]);
        nanosleep(&parked, NULL);
        began = now_ns();
        send_all(producer, found[1]);
        receive_response(consumer);
        elapsed = now_ns() - began;
        receive_response(producer);
        if (round >= rounds / 10) count(elapsed);
    }
    printf("{\"requests\": %lu, \"seconds\": 0, ", counted);
}

/* ---- new connections ---- */

/* Connect, send frame 0, wait for its answer and close, one after the other: the answer shows that the broker has finished
 * the handshake, too. No session is resumed. */
static void handshakes(int port, const char *path, char **argument) {
    double seconds = atof(argument[0]);
    found = read_frames(path, 1, &frames);
    uint64_t start = now_ns(), until = start + (uint64_t)(seconds * 1e9);
    for (uint64_t began = start; began < until; began = now_ns()) {
        int fd = open_connection(port);
        for (size_t sent = 0, n; sent < found[0].size; sent += n)
            if ((ssize_t)(n = (size_t)send_part(fd, found[0].bytes + sent, found[0].size - sent)) <= 0) fail("send");
        size_t received = 0;
        while (received < LENGTH || received < LENGTH + (size_t)u32(scratch)) {
            ssize_t n = receive_part(fd, scratch + received, sizeof scratch - received);
            if (n <= 0) fail("recv");
            received += (size_t)n;
        }
        count(now_ns() - began);
        close_connection(fd);
    }
    printf("{\"requests\": %lu, \"seconds\": %.6f, ", counted, seconds);
}

int main(int count_of, char **argument) {
    if (count_of == 7 && !strcmp(argument[3], "wake")) wake(atoi(argument[1]), argument[2], argument + 4);
    else if (count_of == 5 && !strcmp(argument[3], "handshakes")) handshakes(atoi(argument[1]), argument[2], argument + 4);
    else if (count_of == 10) load(atoi(argument[1]), argument[2], argument + 3);
    else return fputs("usage: see the top of load.c\n", stderr), 2;
    printf("\"p50\": %lu, \"p99\": %lu, \"p999\": %lu, \"max\": %lu}\n", quantile(.5), quantile(.99), quantile(.999), longest);
    return 0;
}
