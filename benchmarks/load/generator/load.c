/* Many connections, one request in flight on each: sends ready-made Kafka requests over and over.
 *
 *   load PORT CONNECTIONS SECONDS ERROR_AT [SEQUENCE_AT] < frames
 *
 * Standard input holds n whole frames, each with its length before it; connection i of c sends
 * frames i, i + c, i + 2c … modulo n: together all of them, and each the same one again and again
 * if n divides c. ERROR_AT is where in a response, counted from behind its length, an
 * int16 error code stands that must be 0; -1 if there is none. One thread, epoll; a response is
 * read away, only its first bytes are looked at.
 *
 * SEQUENCE_AT is where in each frame, its length included, the base sequence of its one batch stands
 * (idempotent producers, a record a batch): it is counted up, and the CRC made anew, from one request
 * to the next. There are then as many frames as connections.
 *
 * Prints one JSON object: requests, seconds, bytes received, CPU seconds of this process, latency
 * percentiles in microseconds. Exit status 1 and a line on standard error if anything is wrong.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_BYTES = 256, READ_BYTES = 1 << 20, MOST_EVENTS = 512, FINE_US = 20000, BUCKETS = 60000 };

struct frame {
    unsigned char *bytes;
    size_t size;
};

struct connection {
    int fd;
    size_t next; /* frame */
    struct frame frame;
    size_t sent;
    size_t received; /* of the present response, its length included */
    size_t expected; /* size of the present response, its length included; 0: not known yet */
    int64_t began_ns;
    unsigned char head[HEAD_BYTES];
};

static unsigned char *scratch;
static uint64_t buckets[BUCKETS];
static uint64_t requests, bytes_in;
static long error_at, sequence_at = -1;
static uint32_t crc_table[256];
static struct frame *frames;
static size_t frame_count, stride;

static void fail(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static uint32_t number_at(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put_number(unsigned char *at, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(number >> (24 - 8 * i));
}

static void make_crc_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (value & 1 ? 0x82F63B78u : 0); /* CRC-32C */
        crc_table[i] = value;
    }
}

/* In a batch: its length at 8, the CRC at 17 of what stands from 21 on, the base sequence at 53. */
static void count_up(unsigned char *frame)
{
    unsigned char *sequence = frame + sequence_at, *batch = sequence - 53;
    const unsigned char *end = batch + 12 + number_at(batch + 8);
    put_number(sequence, number_at(sequence) + 1);
    uint32_t crc = ~0u;
    for (const unsigned char *p = batch + 21; p < end; p++)
        crc = crc >> 8 ^ crc_table[(crc ^ *p) & 255];
    put_number(batch + 17, ~crc);
}

/* Exact microseconds up to FINE_US, milliseconds from there on. */
static void note_latency(int64_t us)
{
    int64_t bucket = us < FINE_US ? us : FINE_US + us / 1000;
    buckets[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
    requests++;
}

static double percentile(double share)
{
    uint64_t want = (uint64_t)(share * (double)requests), seen = 0;
    for (int i = 0; i < BUCKETS; i++) {
        seen += buckets[i];
        if (seen > want)
            return i < FINE_US ? i : (i - FINE_US) * 1000.0;
    }
    return 0;
}

static unsigned char *read_input(size_t *size)
{
    size_t room = 1 << 20;
    unsigned char *input = malloc(room);
    for (*size = 0;;) {
        ssize_t count = read(0, input + *size, room - *size);
        if (count < 0)
            fail("standard input");
        if (count == 0)
            return input;
        *size += (size_t)count;
        if (*size == room)
            input = realloc(input, room *= 2);
    }
}

static void cut_frames(unsigned char *input, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t length = at + 4 <= size ? number_at(input + at) + 4 : 0;
        if (length < 12 || at + length > size) {
            fprintf(stderr, "load: the frames on standard input are cut off\n");
            exit(1);
        }
        frames = realloc(frames, (frame_count + 1) * sizeof *frames);
        frames[frame_count++] = (struct frame){input + at, length};
        at += length;
    }
}

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void watch(int poll, struct connection *connection, uint32_t events, int operation)
{
    struct epoll_event event = {.events = events, .data.ptr = connection};
    if (epoll_ctl(poll, operation, connection->fd, &event) != 0)
        fail("epoll_ctl");
}

/* Send what is left of the request. */
static void send_more(int poll, struct connection *connection)
{
    while (connection->sent < connection->frame.size) {
        ssize_t count = send(connection->fd, connection->frame.bytes + connection->sent,
                             connection->frame.size - connection->sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EAGAIN) {
            watch(poll, connection, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
            return;
        }
        if (count < 0)
            fail("send");
        connection->sent += (size_t)count;
    }
}

static void begin(int poll, struct connection *connection)
{
    connection->sent = connection->received = connection->expected = 0;
    connection->frame = frames[connection->next];
    connection->next = (connection->next + stride) % frame_count;
    connection->began_ns = now_ns();
    send_more(poll, connection);
}

static void check(const struct connection *connection)
{
    size_t at = (size_t)error_at + 4;
    if (error_at < 0)
        return;
    if (at + 2 > connection->expected || at + 2 > HEAD_BYTES) {
        fprintf(stderr, "load: a response of %zu bytes has no error code at %ld\n",
                connection->expected, error_at);
        exit(1);
    }
    int code = (int16_t)(connection->head[at] << 8 | connection->head[at + 1]);
    if (code != 0) {
        fprintf(stderr, "load: the broker answers with error %d\n", code);
        exit(1);
    }
}

/* Read what is there; return whether the response is complete. */
static int receive(struct connection *connection)
{
    for (;;) {
        size_t want = connection->expected ? connection->expected - connection->received : READ_BYTES;
        ssize_t count = recv(connection->fd, scratch, want < READ_BYTES ? want : READ_BYTES, 0);
        if (count < 0 && errno == EAGAIN)
            return 0;
        if (count <= 0) {
            if (count == 0)
                errno = ECONNRESET;
            fail("recv");
        }
        if (connection->received < HEAD_BYTES) {
            size_t room = HEAD_BYTES - connection->received;
            memcpy(connection->head + connection->received, scratch,
                   (size_t)count < room ? (size_t)count : room);
        }
        connection->received += (size_t)count;
        bytes_in += (uint64_t)count;
        if (!connection->expected && connection->received >= 4)
            connection->expected = number_at(connection->head) + 4;
        if (connection->expected && connection->received >= connection->expected)
            return 1;
    }
}

static void drive(int poll, int64_t end_ns, int connections)
{
    struct epoll_event events[MOST_EVENTS];
    int busy = connections;
    while (busy > 0) {
        int count = epoll_wait(poll, events, MOST_EVENTS, 30000);
        if (count == 0)
            errno = ETIMEDOUT;
        if (count <= 0)
            fail("no answer for 30 s");
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (events[i].events & EPOLLOUT) {
                watch(poll, connection, EPOLLIN, EPOLL_CTL_MOD);
                send_more(poll, connection);
            }
            if (!(events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || !receive(connection))
                continue;
            check(connection);
            int64_t now = now_ns();
            note_latency((now - connection->began_ns) / 1000);
            if (now < end_ns) {
                if (sequence_at >= 0)
                    count_up(connection->frame.bytes);
                begin(poll, connection);
            }
            else
                busy--;
        }
    }
}

int main(int count, char **arguments)
{
    if (count != 5 && count != 6) {
        fprintf(stderr, "usage: load PORT CONNECTIONS SECONDS ERROR_AT [SEQUENCE_AT] < frames\n");
        return 2;
    }
    int port = atoi(arguments[1]), connections = atoi(arguments[2]);
    double seconds = atof(arguments[3]);
    error_at = atol(arguments[4]);
    if (count == 6)
        sequence_at = atol(arguments[5]);
    make_crc_table();
    size_t size;
    unsigned char *input = read_input(&size);
    cut_frames(input, size);
    stride = (size_t)connections;
    if (sequence_at >= 0 && frame_count != stride) {
        fprintf(stderr, "load: sequences need a frame for each connection\n");
        return 2;
    }
    struct rlimit files = {(rlim_t)connections + 64, (rlim_t)connections + 64};
    setrlimit(RLIMIT_NOFILE, &files);
    scratch = malloc(READ_BYTES);
    struct connection *all = calloc((size_t)connections, sizeof *all);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    if (frame_count == 0 || connections < 1 || poll < 0)
        fail("nothing to do");
    for (int i = 0; i < connections; i++) {
        all[i].next = (size_t)i % frame_count;
        all[i].fd = connect_to(port);
        watch(poll, &all[i], EPOLLIN, EPOLL_CTL_ADD);
    }
    int64_t start_ns = now_ns(), end_ns = start_ns + (int64_t)(seconds * 1e9);
    for (int i = 0; i < connections; i++)
        begin(poll, &all[i]);
    drive(poll, end_ns, connections);
    double took = (double)(now_ns() - start_ns) / 1e9;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"requests\": %llu, \"seconds\": %.6f, \"bytes\": %llu, \"cpu_s\": %.3f, "
           "\"p50_us\": %.0f, \"p99_us\": %.0f, \"p999_us\": %.0f}\n",
           (unsigned long long)requests, took, (unsigned long long)bytes_in,
           (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
               + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
           percentile(0.5), percentile(0.99), percentile(0.999));
    return 0;
}
