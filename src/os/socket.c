/* Stream sockets over TCP and Unix paths, with deadlines. */
#ifdef __APPLE__
#define _DARWIN_C_SOURCE // NOLINT(bugprone-reserved-identifier): SO_NOSIGPIPE
#endif
#include "os/socket.h"

#include "os/error.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024, NAP_NS = 1000000 };

#ifdef MSG_NOSIGNAL
#define SEND_FLAGS MSG_NOSIGNAL
#else
#define SEND_FLAGS 0 // SO_NOSIGPIPE is set once instead
#endif

struct lsi_socket {
    int fd;
    int port;
    bool owns_path; // a Unix listener removes its path
    char text[300];
};

/* A network address of any family. */
union place {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
    struct sockaddr_storage room;
};

static lsi_socket *new_socket(int fd, const char *text)
{
    lsi_socket *s = lsi_alloc(1, sizeof *s);

    if (s != NULL) {
        s->fd = fd;
        (void)snprintf(s->text, sizeof s->text, "%s", text);
    }
    return s;
}

void lsi_socket_release(lsi_socket *socket)
{
    if (socket == NULL) {
        return;
    }
    if (socket->owns_path) {
        (void)unlink(socket->text + strlen("unix:"));
    }
    (void)close(socket->fd);
    lsi_free(socket);
}

void lsi_socket_shutdown(lsi_socket *socket)
{
    (void)shutdown(socket->fd, SHUT_RDWR);
}

const char *lsi_socket_address(const lsi_socket *socket)
{
    return socket->text;
}

int lsi_socket_port(const lsi_socket *socket)
{
    return socket->port;
}

int lsi_socket_fd(const lsi_socket *socket)
{
    return socket->fd;
}

/* No blocking, no inheritance, no SIGPIPE, no delay; an errno. */
static int prepare(int fd, int family)
{
    const int on = 1;
    const int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        return errno;
    }
#ifdef SO_NOSIGPIPE
    (void)setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    if (family != AF_UNIX) { // messages are written whole
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    return 0;
}

/* Writes "127.0.0.1:2222" or "[::1]:2222"; returns the port, 0 if it has none. */
static int describe(const union place *at, socklen_t len, char *out, size_t size)
{
    char host[128], port[16];

    if (at->any.sa_family == AF_UNIX ||
        getnameinfo(&at->any, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return 0;
    }
    (void)snprintf(out, size, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host,
                   port);
    return at->any.sa_family == AF_INET6 ? ntohs(at->v6.sin6_port)
                                         : ntohs(at->v4.sin_port);
}

/* Waits until `fd` is ready for `events`. */
static ls_status wait_ready(int fd, short events, lsi_deadline deadline, const char *what,
                            const char *who, ls_error *err)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        const int n = poll(&p, 1, lsi_deadline_poll_ms(deadline));

        if (n > 0) {
            return LS_OK; // errors, too: the next call reports them
        }
        if (n < 0 && errno != EINTR) {
            return lsi_fail_errno(err, errno, "cannot wait to %s %s", what, who);
        }
        if (lsi_deadline_passed(deadline)) {
            return lsi_fail(err, LS_DEADLINE_EXCEEDED, -1,
                            "the time to %s %s is over: it did not answer", what, who);
        }
    }
}

static ls_status unix_place(const lsi_address *addr, union place *out, ls_error *err)
{
    memset(out, 0, sizeof *out);
    out->un.sun_family = AF_UNIX;
    if (strlen(addr->host) >= sizeof out->un.sun_path) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "address \"unix:%s\": the path has more than %zu characters",
                        addr->host, sizeof out->un.sun_path - 1);
    }
    memcpy(out->un.sun_path, addr->host, strlen(addr->host) + 1);
    return LS_OK;
}

/* The addresses of a host; freeaddrinfo() when done. */
static ls_status look_up(const lsi_address *addr, bool listening, struct addrinfo **out,
                         ls_error *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags =
                                       AI_NUMERICSERV | (listening ? AI_PASSIVE : 0)};
    char port[16];
    int rc;

    (void)snprintf(port, sizeof port, "%d", addr->port);
    rc = getaddrinfo(addr->host[0] != '\0' ? addr->host : NULL, port, &hints, out);
    if (rc == EAI_SYSTEM) {
        return lsi_fail_errno(err, errno, "cannot look up host \"%s\"", addr->host);
    }
    if (rc != 0) {
        return lsi_fail(err, rc == EAI_MEMORY ? LS_RESOURCE_EXHAUSTED : LS_UNAVAILABLE,
                        -1, "cannot look up host \"%s\": %s", addr->host,
                        gai_strerror(rc));
    }
    return LS_OK;
}

/* Removes a socket path on which no process listens any more. */
static bool is_left_over(const union place *at)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    bool dead = false;

    if (fd >= 0) {
        dead = prepare(fd, AF_UNIX) == 0 && connect(fd, &at->any, sizeof at->un) != 0 &&
               errno == ECONNREFUSED;
        (void)close(fd);
    }
    return dead;
}

/* A listening descriptor, or -1 with errno. */
static int listen_at(const struct sockaddr *at, socklen_t len)
{
    const int on = 1;
    const int fd = socket(at->sa_family, SOCK_STREAM, 0);
    int rc;

    if (fd < 0) {
        return -1;
    }
    rc = prepare(fd, at->sa_family);
    if (rc == 0 && at->sa_family != AF_UNIX) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    if (rc == 0 && (bind(fd, at, len) != 0 || listen(fd, BACKLOG) != 0)) {
        rc = errno;
    }
    if (rc != 0) {
        (void)close(fd);
        errno = rc;
        return -1;
    }
    return fd;
}

static ls_status listen_unix(const lsi_address *addr, int *fd, ls_error *err)
{
    union place at;
    const ls_status st = unix_place(addr, &at, err);

    if (st != LS_OK) {
        return st;
    }
    *fd = listen_at(&at.any, sizeof at.un);
    if (*fd < 0 && errno == EADDRINUSE && is_left_over(&at)) {
        (void)unlink(addr->host);
        *fd = listen_at(&at.any, sizeof at.un);
    }
    return *fd >= 0 ? LS_OK
                    : lsi_fail_errno(err, errno, "cannot listen on unix:%s", addr->host);
}

static ls_status listen_tcp(const char *address, const lsi_address *addr, int *fd,
                            ls_error *err)
{
    struct addrinfo *list = NULL;
    const ls_status st = look_up(addr, true, &list, err);
    int why = EADDRNOTAVAIL;

    if (st != LS_OK) {
        return st;
    }
    for (const struct addrinfo *a = list; a != NULL && *fd < 0; a = a->ai_next) {
        *fd = listen_at(a->ai_addr, a->ai_addrlen);
        if (*fd < 0) {
            why = errno;
        }
    }
    freeaddrinfo(list);
    return *fd >= 0 ? LS_OK : lsi_fail_errno(err, why, "cannot listen on %s", address);
}

ls_status lsi_socket_listen(const char *address, lsi_socket **out, ls_error *err)
{
    union place at;
    socklen_t len = sizeof at;
    lsi_address addr;
    lsi_socket *s;
    int fd = -1;
    ls_status st = lsi_address_parse(address, &addr, err);

    if (st == LS_OK) {
        st = addr.is_unix ? listen_unix(&addr, &fd, err)
                          : listen_tcp(address, &addr, &fd, err);
    }
    if (st != LS_OK) {
        return st;
    }
    s = new_socket(fd, address);
    if (s == NULL) {
        (void)close(fd);
        if (addr.is_unix) {
            (void)unlink(addr.host);
        }
        return lsi_fail_memory(err, "a listening socket", sizeof *s);
    }
    s->owns_path = addr.is_unix;
    if (getsockname(fd, &at.any, &len) == 0) {
        s->port = describe(&at, len, s->text, sizeof s->text);
    }
    *out = s;
    return LS_OK;
}

/* Failures of one connecting peer, not of the listener. */
static bool is_passing(int number)
{
    return number == EINTR || number == EAGAIN || number == EWOULDBLOCK ||
           number == ECONNABORTED || number == EPROTO;
}

ls_status lsi_socket_accept(lsi_socket *listener, lsi_deadline deadline, lsi_socket **out,
                            ls_error *err)
{
    union place peer;
    lsi_socket *s;
    int fd;

    for (;;) {
        socklen_t len = sizeof peer;
        ls_status st;

        memset(&peer, 0, sizeof peer);
        fd = accept(listener->fd, &peer.any, &len);
        if (fd >= 0) {
            break;
        }
        if (!is_passing(errno)) {
            return lsi_fail_errno(err, errno, "cannot accept on %s", listener->text);
        }
        st = wait_ready(listener->fd, POLLIN, deadline, "accept on", listener->text, err);
        if (st != LS_OK) {
            return st;
        }
    }
    s = new_socket(fd, listener->text);
    if (s == NULL) {
        (void)close(fd);
        return lsi_fail_memory(err, "an accepted socket", sizeof *s);
    }
    s->port = describe(&peer, sizeof peer, s->text, sizeof s->text);
    const int rc = prepare(fd, peer.any.sa_family);
    if (rc != 0) {
        lsi_socket_release(s);
        return lsi_fail_errno(err, rc, "cannot accept on %s", listener->text);
    }
    *out = s;
    return LS_OK;
}

/* One attempt: a connected descriptor in *fd. */
static ls_status connect_at(const char *address, const struct sockaddr *at, socklen_t len,
                            lsi_deadline deadline, int *fd, ls_error *err)
{
    socklen_t size = sizeof(int);
    ls_status st = LS_OK;
    int rc = 0;

    *fd = socket(at->sa_family, SOCK_STREAM, 0);
    if (*fd < 0) {
        return lsi_fail_errno(err, errno, "cannot connect to %s", address);
    }
    rc = prepare(*fd, at->sa_family);
    while (rc == 0 && connect(*fd, at, len) != 0) {
        rc = errno;
        if (rc == EAGAIN && at->sa_family == AF_UNIX) { // the listener's queue is full
            if (lsi_deadline_passed(deadline)) {
                break;
            }
            lsi_sleep_ns(NAP_NS);
            rc = 0;
        }
    }
    if (rc == EINPROGRESS || rc == EINTR) {
        st = wait_ready(*fd, POLLOUT, deadline, "connect to", address, err);
        if (st == LS_OK && getsockopt(*fd, SOL_SOCKET, SO_ERROR, &rc, &size) != 0) {
            rc = errno;
        }
    }
    if (st == LS_OK && rc == EAGAIN) { // of the queue that stayed full
        st = lsi_fail_errno_as(err, LS_DEADLINE_EXCEEDED, rc, "cannot connect to %s",
                               address);
    } else if (st == LS_OK && (rc == ENOENT || rc == ETIMEDOUT)) {
        // No path yet, or TCP gave up before our deadline: no process listens.
        st = lsi_fail_errno_as(err, LS_UNAVAILABLE, rc, "cannot connect to %s", address);
    } else if (st == LS_OK && rc != 0) {
        st = lsi_fail_errno(err, rc, "cannot connect to %s", address);
    }
    if (st != LS_OK) {
        (void)close(*fd);
        *fd = -1;
    }
    return st;
}

static ls_status connect_tcp(const char *address, const lsi_address *addr,
                             lsi_deadline deadline, int *fd, ls_error *err)
{
    struct addrinfo *list = NULL;
    ls_status st = look_up(addr, false, &list, err);

    if (st != LS_OK) {
        return st;
    }
    st = LS_UNAVAILABLE;
    for (const struct addrinfo *a = list; a != NULL && st != LS_OK; a = a->ai_next) {
        st = connect_at(address, a->ai_addr, a->ai_addrlen, deadline, fd, err);
    }
    freeaddrinfo(list);
    return st;
}

ls_status lsi_socket_connect(const char *address, lsi_deadline deadline, lsi_socket **out,
                             ls_error *err)
{
    lsi_address addr;
    union place at;
    lsi_socket *s;
    int fd = -1;
    ls_status st = lsi_address_parse(address, &addr, err);

    if (st == LS_OK && addr.is_unix) {
        st = unix_place(&addr, &at, err);
        if (st == LS_OK) {
            st = connect_at(address, &at.any, sizeof at.un, deadline, &fd, err);
        }
    } else if (st == LS_OK) {
        st = connect_tcp(address, &addr, deadline, &fd, err);
    }
    if (st != LS_OK) {
        return st;
    }
    s = new_socket(fd, address);
    if (s == NULL) {
        (void)close(fd);
        return lsi_fail_memory(err, "a connected socket", sizeof *s);
    }
    s->port = addr.port;
    *out = s;
    return LS_OK;
}

ls_status lsi_socket_send(lsi_socket *socket, const void *from, size_t len,
                          lsi_deadline deadline, ls_error *err)
{
    const char *p = from;

    while (len > 0) {
        const ssize_t n = send(socket->fd, p, len, SEND_FLAGS);

        if (n >= 0) {
            p += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            const ls_status st =
                wait_ready(socket->fd, POLLOUT, deadline, "send to", socket->text, err);

            if (st != LS_OK) {
                return st;
            }
        } else if (errno != EINTR) {
            return lsi_fail_errno(err, errno, "cannot send %zu bytes to %s", len,
                                  socket->text);
        }
    }
    return LS_OK;
}

ls_status lsi_socket_recv_some(lsi_socket *socket, void *to, size_t len,
                               lsi_deadline deadline, size_t *got, ls_error *err)
{
    for (;;) {
        const ssize_t n = recv(socket->fd, to, len, 0);

        if (n >= 0) {
            *got = (size_t)n;
            return LS_OK;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            const ls_status st = wait_ready(socket->fd, POLLIN, deadline, "receive from",
                                            socket->text, err);

            if (st != LS_OK) {
                return st;
            }
        } else if (errno != EINTR) {
            return lsi_fail_errno(err, errno, "cannot receive from %s", socket->text);
        }
    }
}

ls_status lsi_socket_recv(lsi_socket *socket, void *to, size_t len, lsi_deadline deadline,
                          ls_error *err)
{
    char *p = to;

    while (len > 0) {
        size_t got = 0;
        const ls_status st = lsi_socket_recv_some(socket, p, len, deadline, &got, err);

        if (st != LS_OK) {
            return st;
        }
        if (got == 0) {
            return lsi_fail(err, LS_UNAVAILABLE, -1,
                            "%s closed the connection with %zu bytes to come",
                            socket->text, len);
        }
        p += got;
        len -= got;
    }
    return LS_OK;
}
