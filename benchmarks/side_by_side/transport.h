/* The sockets of a load: plain, or, in a program compiled with -DTLS and -lssl, with TLS of the versions that both sides
 * offer. Nothing is verified: what is measured is the broker. `pending` tells of bytes that poll cannot see, because they
 * have left the socket already. */
#ifdef TLS
#include <openssl/ssl.h>

enum { DESCRIPTORS = 4096 };
static SSL *secured[DESCRIPTORS];

/* Complete the handshake of a connected socket, which blocks. */
static void secure(int fd) {
    static SSL_CTX *context;
    if (!context) {
        context = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    }
    errno = EMFILE;
    if (fd >= DESCRIPTORS) fail("descriptors");
    errno = 0;
    if (!(secured[fd] = SSL_new(context)) || SSL_set_fd(secured[fd], fd) != 1 || SSL_connect(secured[fd]) != 1)
        fail("the TLS handshake");
}

static void close_connection(int fd) {
    SSL_shutdown(secured[fd]);
    SSL_free(secured[fd]);
    close(fd);
}

static int pending(int fd) { return SSL_pending(secured[fd]); }

/* As recv and send: the bytes of at least one record, 0 at the end, or -1 with errno. */
static ssize_t moved(int fd, int n) {
    if (n > 0) return n;
    int error = SSL_get_error(secured[fd], n);
    if (error == SSL_ERROR_ZERO_RETURN) return 0;
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
    return -1;
}

static ssize_t send_part(int fd, const uint8_t *bytes, size_t size) {
    return moved(fd, SSL_write(secured[fd], bytes, (int)size));
}

static ssize_t receive_part(int fd, uint8_t *into, size_t size) {
    return moved(fd, SSL_read(secured[fd], into, (int)size));
}
#else
static void secure(int fd) { (void)fd; }
static void close_connection(int fd) { close(fd); }
static int pending(int fd) { return (void)fd, 0; }
static ssize_t send_part(int fd, const uint8_t *bytes, size_t size) { return send(fd, bytes, size, MSG_NOSIGNAL); }
static ssize_t receive_part(int fd, uint8_t *into, size_t size) { return recv(fd, into, size, 0); }
#endif

static int open_connection(int port) {
    int fd = connect_to(port);
    secure(fd);
    return fd;
}

static void unblock(int fd) {
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK)) fail("fcntl");
}
