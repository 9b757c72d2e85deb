/*
 * Streams to other processes. Addresses are "host:port", "[::1]:port" and "unix:/path";
 * an empty host listens everywhere, port 0 listens on a free one. Every wait has a
 * deadline; a peer that is gone is LS_UNAVAILABLE and never a signal.
 *
 * Threads: one may send while another receives; lsi_socket_shutdown() by any.
 */
#ifndef LSI_SOCKET_H
#define LSI_SOCKET_H
#include "base/base.h"
#include "os/clock.h"

typedef struct lsi_socket lsi_socket;

typedef struct lsi_address {
    bool is_unix;
    char host[256]; /* or the path; without brackets */
    int port;
} lsi_address;

/* LS_INVALID_ARGUMENT: the message tells what is wrong with `text`. */
ls_status lsi_address_parse(const char *text, lsi_address *out, ls_error *err);

/* LS_ALREADY_EXISTS: the address is in use. */
ls_status lsi_socket_listen(const char *address, lsi_socket **out, ls_error *err);
ls_status lsi_socket_accept(lsi_socket *listener, lsi_deadline deadline, lsi_socket **out,
                            ls_error *err);

/*
 * One attempt for each address of the host. LS_UNAVAILABLE: no process listens. Looking
 * up the name of a host is the system's and knows no deadline.
 */
ls_status lsi_socket_connect(const char *address, lsi_deadline deadline, lsi_socket **out,
                             ls_error *err);
void lsi_socket_release(lsi_socket *socket); /* NULL is allowed */

/* Wakes threads that send or receive; both ends see the end of the stream. */
void lsi_socket_shutdown(lsi_socket *socket);

/* All of it. */
ls_status lsi_socket_send(lsi_socket *socket, const void *from, size_t len,
                          lsi_deadline deadline, ls_error *err);

/* All of it; LS_UNAVAILABLE: the peer closed before. */
ls_status lsi_socket_recv(lsi_socket *socket, void *to, size_t len, lsi_deadline deadline,
                          ls_error *err);

/* What is there, at least a byte; *got is 0 when the peer has closed. */
ls_status lsi_socket_recv_some(lsi_socket *socket, void *to, size_t len,
                               lsi_deadline deadline, size_t *got, ls_error *err);

/* A listener's own address with its real port; of a stream, the peer's. */
const char *lsi_socket_address(const lsi_socket *socket);
int lsi_socket_port(const lsi_socket *socket); /* 0: unix */
int lsi_socket_fd(const lsi_socket *socket);   /* for poll(); borrowed */
#endif
