/* Transactional producers on a Kafka broker, from one thread: what is measured is the broker, not this program.
 *
 *   transactions PORT SCRIPT load SECONDS                          every producer does one transaction after the other
 *   transactions PORT SCRIPT visible ROUNDS OFFSET_AT STEP SIZE    from a commit to a parked consumer, see `visible`
 *
 * The requests are made by `transactional_load.py`. Of Kafka this program contains what changes from one transaction to the
 * next: the correlation id, the producer id and epoch, the first sequence and the checksum of a batch, which cost it some
 * microseconds, or 40 for 300 KB of records. A request that meets CONCURRENT_TRANSACTIONS is sent again after 20 ms, as by
 * Java's producer; any other error ends the program. One line of JSON is printed; times are in nanoseconds, of a whole
 * transaction.
 *
 * SCRIPT: i32 producers, then for each: i64 producer id, i32 epoch, i32 steps; for each step: i32 n, n times the i32 position
 * of an error code in a response (from its length on), the i32 position of the next producer id and epoch in it or 0, and the
 * frame. In a frame the producer id is MARK wherever it stands, followed by the epoch, and in a batch by the first sequence.
 */
#include "measure.h"

enum { API_KEY = 4, PRODUCE = 0, CONCURRENT_TRANSACTIONS = 51, RESPONSE_BYTES = 1 << 16 };
static const uint64_t RETRY_NS = 20000000, TIMEOUT_NS = 60000000000;
static const uint8_t MARK[8] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};

/* Places in a batch. */
enum { BATCH_LENGTH = 8, CRC = 17, ATTRIBUTES = 21, BATCH_PRODUCER = 43, RECORDS = 57, LOG_OVERHEAD = 12 };

/* ---- checksums ---- */

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c(const uint8_t *at, size_t size) {
    uint64_t crc = 0xffffffff, word;
    for (; size >= sizeof word; at += sizeof word, size -= sizeof word) {
        memcpy(&word, at, sizeof word);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    uint32_t rest = (uint32_t)crc;
    while (size--) rest = __builtin_ia32_crc32qi(rest, *at++);
    return ~rest;
}
#else
static uint32_t crc32c(const uint8_t *at, size_t size) {
    static uint32_t table[256];
    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            table[i] = i;
            for (int bit = 0; bit < 8; bit++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82f63b78 : 0);
        }
    uint32_t crc = 0xffffffff;
    while (size--) crc = crc >> 8 ^ table[(uint8_t)crc ^ *at++];
    return ~crc;
}
#endif

/* ---- producers and their requests ---- */

struct place { uint8_t *at; uint32_t sequence; };   /* of a producer id; the next sequence, if it is in a batch */

struct step {
    struct frame frame;
    struct place *places;
    int places_count, errors_count, is_produce;
    uint32_t *errors, next_id;                      /* positions in the response */
};

struct producer {
    int fd, steps_count, step;
    struct step *steps;
    uint64_t id, began, retry_at;                   /* retry_at: 0 unless the step waits to be sent again */
    uint32_t epoch, correlation;
    size_t sent, received;
    int is_idle, waits_for_room;
    uint8_t response[RESPONSE_BYTES];
};

static struct producer *all;
static uint32_t producers;
static uint64_t retries;

static uint64_t u64(const uint8_t *at) { return (uint64_t)u32(at) << 32 | u32(at + 4); }

static uint32_t u16(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }

static void find_places(struct step *step) {
    uint8_t *end = step->frame.bytes + step->frame.size, *at = step->frame.bytes;
    step->is_produce = u16(step->frame.bytes + API_KEY) == PRODUCE;
    while ((at = memmem(at, (size_t)(end - at), MARK, sizeof MARK))) {
        step->places = realloc(step->places, sizeof *step->places * (size_t)(step->places_count + 1));
        step->places[step->places_count++] = (struct place){at, 0};
        at += sizeof MARK;
    }
}

static uint8_t *read_step(struct step *step, uint8_t *at) {
    step->errors_count = (int)u32(at), at += 4;
    step->errors = calloc((size_t)step->errors_count + 1, sizeof *step->errors);
    for (int i = 0; i < step->errors_count; i++, at += 4) step->errors[i] = u32(at);
    step->next_id = u32(at), at += 4;
    step->frame = (struct frame){at, LENGTH + u32(at)};
    find_places(step);
    return at + step->frame.size;
}

static void read_script(const char *path, int port) {
    size_t size;
    uint8_t *at = read_file(path, &size);
    producers = u32(at), at += 4;
    all = calloc(producers, sizeof *all);
    for (struct producer *p = all; p < all + producers; p++) {
        p->id = u64(at), p->epoch = u32(at + 8), p->steps_count = (int)u32(at + 12), at += 16;
        p->steps = calloc((size_t)p->steps_count, sizeof *p->steps);
        for (int i = 0; i < p->steps_count; i++) at = read_step(&p->steps[i], at);
        p->fd = connect_to(port);
        p->is_idle = 1;
    }
}

/* Put the producer id, its epoch, sequences and checksums into the request of the present step. */
static struct frame prepared(struct producer *p) {
    struct step *step = &p->steps[p->step];
    put_u32(step->frame.bytes + CORRELATION, ++p->correlation);
    for (struct place *place = step->places; place < step->places + step->places_count; place++) {
        put_u32(place->at, (uint32_t)(p->id >> 32));
        put_u32(place->at + 4, (uint32_t)p->id);
        place->at[8] = (uint8_t)(p->epoch >> 8), place->at[9] = (uint8_t)p->epoch;
        if (!step->is_produce) continue;
        put_u32(place->at + 10, place->sequence);
        uint8_t *batch = place->at - BATCH_PRODUCER;
        put_u32(batch + CRC, crc32c(batch + ATTRIBUTES, LOG_OVERHEAD + u32(batch + BATCH_LENGTH) - ATTRIBUTES));
    }
    return step->frame;
}

static void take_next_id(struct producer *p, const uint8_t *at) {
    uint64_t id = u64(at);
    uint32_t epoch = u16(at + 8);
    if (id == p->id && epoch == p->epoch) return;
    p->id = id, p->epoch = epoch;
    for (int i = 0; i < p->steps_count; i++)
        for (int j = 0; j < p->steps[i].places_count; j++) p->steps[i].places[j].sequence = 0;
}

/* Returns 0 if the request must be sent again; else goes on to the next step. The rows before the first error have the usual
 * length, so that the position of its code holds even if an error message follows it. */
static int accepted(struct producer *p, const uint8_t *response) {
    struct step *step = &p->steps[p->step];
    errno = 0;
    if (u32(response + LENGTH) != p->correlation) fail("an answer out of order");
    for (int i = 0; i < step->errors_count; i++) {
        uint32_t code = u16(response + step->errors[i]);
        if (code == CONCURRENT_TRANSACTIONS) return retries++, 0;
        if (code) {
            fprintf(stderr, "load: API %u is answered with error %u\n", u16(step->frame.bytes + API_KEY), code);
            exit(1);
        }
    }
    if (step->is_produce)
        for (struct place *place = step->places; place < step->places + step->places_count; place++)
            place->sequence += u32(place->at - BATCH_PRODUCER + RECORDS);
    if (step->next_id) take_next_id(p, response + step->next_id);
    p->step = (p->step + 1) % p->steps_count;
    return 1;
}

/* ---- a load ---- */

static int poller;
static uint64_t ends_at, finished;

static void watch(struct producer *p, int events, int how) {
    struct epoll_event event = {.events = (uint32_t)events, .data.ptr = p};
    if (epoll_ctl(poller, how, p->fd, &event)) fail("epoll_ctl");
}

static void send_some(struct producer *p) {
    struct frame frame = p->steps[p->step].frame;
    while (p->sent < frame.size) {
        ssize_t n = send(p->fd, frame.bytes + p->sent, frame.size - p->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) fail("send");
        if (n < 0) {
            if (!p->waits_for_room) watch(p, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD), p->waits_for_room = 1;
            return;
        }
        p->sent += (size_t)n;
    }
    if (p->waits_for_room) watch(p, EPOLLIN, EPOLL_CTL_MOD), p->waits_for_room = 0;
}

static void begin_step(struct producer *p) {
    prepared(p);
    p->sent = p->received = 0;
    send_some(p);
}

static void begin_transaction(struct producer *p, uint64_t now) {
    p->is_idle = now >= ends_at;
    p->began = now;
    if (!p->is_idle) begin_step(p);
}

static void receive_some(struct producer *p) {
    ssize_t n = recv(p->fd, p->response + p->received, sizeof p->response - p->received, MSG_DONTWAIT);
    if (n == 0) errno = ECONNRESET;
    if (n <= 0) {
        if (n < 0 && errno == EAGAIN) return;
        fail("recv");
    }
    p->received += (size_t)n;
    if (p->received < HEADER || p->received < LENGTH + (size_t)u32(p->response)) return;
    uint64_t now = now_ns();
    if (!accepted(p, p->response)) {
        p->retry_at = now + RETRY_NS;
    } else if (p->step) {
        begin_step(p);
    } else {
        if (now < ends_at) count(now - p->began), finished++;
        begin_transaction(p, now);
    }
}

static int retry_due(uint64_t now) {
    int wait_ms = 100;
    for (struct producer *p = all; p < all + producers; p++) {
        if (!p->retry_at) continue;
        if (p->retry_at <= now) p->retry_at = 0, begin_step(p);
        else if ((int)((p->retry_at - now) / 1000000) < wait_ms) wait_ms = (int)((p->retry_at - now) / 1000000) + 1;
    }
    return wait_ms;
}

static int all_idle(void) {
    for (uint32_t i = 0; i < producers; i++)
        if (!all[i].is_idle) return 0;
    return 1;
}

static void load(double seconds) {
    poller = epoll_create1(0);
    uint64_t now = now_ns();
    ends_at = now + (uint64_t)(seconds * 1e9);
    for (uint32_t i = 0; i < producers; i++) {
        watch(&all[i], EPOLLIN, EPOLL_CTL_ADD);
        begin_transaction(&all[i], now);
    }
    struct epoll_event events[64];
    while (!all_idle()) {
        if ((now = now_ns()) > ends_at + TIMEOUT_NS) errno = ETIMEDOUT, fail("answers");
        int n = epoll_wait(poller, events, 64, retry_due(now));
        for (int i = 0; i < n; i++) {
            if (events[i].events & EPOLLOUT) send_some(events[i].data.ptr);
            if (events[i].events & ~(uint32_t)EPOLLOUT) receive_some(events[i].data.ptr);
        }
    }
    printf("{\"transactions\": %lu, ", finished);
}

/* ---- from a commit to a parked consumer ---- */

static void do_step(struct producer *p) {
    struct timespec pause = {.tv_nsec = (long)RETRY_NS};
    for (;;) {
        send_all(p->fd, prepared(p));
        receive_response(p->fd);
        if (accepted(p, scratch)) return;
        nanosleep(&pause, NULL);
    }
}

/* The first producer of the script is one; the only step of the second is a Fetch at the end of the log, with read_committed,
 * whose offset, at byte OFFSET_AT, grows by STEP a round. A round: the Fetch, the transaction up to its end, half a
 * millisecond, EndTxn; the time from then until the Fetch is answered with at least SIZE bytes is counted. A response without
 * the records is not one: the Fetch is sent again. A tenth of the rounds, the first, are not counted. */
static void visible(uint64_t rounds, size_t offset_at, uint32_t step, uint64_t size) {
    struct producer *p = &all[0];
    struct frame fetch = all[1].steps[0].frame;
    int consumer = all[1].fd;
    uint64_t offset = u64(fetch.bytes + offset_at), early = 0;
    struct timespec parked = {.tv_nsec = 500000};
    for (uint64_t round = 0; round < rounds; round++, offset += step) {
        put_u32(fetch.bytes + offset_at, (uint32_t)(offset >> 32));
        put_u32(fetch.bytes + offset_at + 4, (uint32_t)offset);
        send_all(consumer, fetch);
        while (p->step < p->steps_count - 1) do_step(p);
        nanosleep(&parked, NULL);
        uint64_t began = now_ns();
        send_all(p->fd, prepared(p));
        while (receive_response(consumer) < size) send_all(consumer, fetch), early++;
        if (round >= rounds / 10) count(now_ns() - began);
        receive_response(p->fd);
        if (!accepted(p, scratch)) fail("the end of a transaction meets another transition");
    }
    printf("{\"transactions\": %lu, \"early\": %lu, ", counted, early);
}

int main(int count_of, char **argument) {
    int is_load = count_of == 5 && !strcmp(argument[3], "load");
    if (!is_load && (count_of != 8 || strcmp(argument[3], "visible")))
        return fputs("usage: see the top of transactions.c\n", stderr), 2;
    read_script(argument[2], atoi(argument[1]));
    if (is_load) load(atof(argument[4]));
    else visible(strtoull(argument[4], NULL, 10), (size_t)atoi(argument[5]), (uint32_t)atoi(argument[6]), strtoull(argument[7], NULL, 10));
    printf("\"retries\": %lu, \"p50\": %lu, \"p99\": %lu, \"p999\": %lu, \"max\": %lu}\n",
           retries, quantile(.5), quantile(.99), quantile(.999), longest);
    return 0;
}
