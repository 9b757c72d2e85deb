/* Sockets: addresses, connections, deadlines, closed peers. */
#include "os/socket.h"

#include "os/thread.h"

#include "ls_test.h"

#include <unistd.h>

#define LONG_MS 60000 // a test that needs it hangs, it is not slow

static lsi_deadline later(void)
{
    return lsi_deadline_in_ms(LONG_MS);
}

/* Sends back what it gets until the peer closes. */
static void echo(void *arg)
{
    ls_error err = LS_ERROR_INIT;
    lsi_socket *s = NULL;
    size_t got = 1;
    char buf[4096];

    LST_OK(lsi_socket_accept(arg, later(), &s, &err));
    while (s != NULL && got > 0) {
        got = 0;
        LST_OK(lsi_socket_recv_some(s, buf, sizeof buf, later(), &got, &err));
        LST_OK(lsi_socket_send(s, buf, got, later(), &err));
    }
    lsi_socket_release(s);
}

/* Through an echo at `address`, more than the system's buffers hold. */
static void check_echo(const char *address)
{
    enum { BYTES = 8 << 20, AT_ONCE = 30000 };
    ls_error err = LS_ERROR_INIT;
    lsi_socket *listener = NULL, *s = NULL;
    unsigned char *from = lsi_alloc(1, BYTES), *to = lsi_alloc(1, BYTES);
    lsi_thread thread;

    for (size_t i = 0; i < BYTES; i++) {
        from[i] = (unsigned char)(i * 2654435761u >> 13);
    }
    LST_OK(lsi_socket_listen(address, &listener, &err));
    LST_OK(lsi_thread_start(&thread, echo, listener, &err, "echo"));
    LST_OK(lsi_socket_connect(lsi_socket_address(listener), later(), &s, &err));
    for (size_t at = 0; at < BYTES; at += AT_ONCE) {
        const size_t n = LSI_MIN((size_t)AT_ONCE, BYTES - at);

        LST_OK(lsi_socket_send(s, from + at, n, later(), &err));
        LST_OK(lsi_socket_recv(s, to + at, n, later(), &err));
    }
    LST_CHECK(memcmp(from, to, BYTES) == 0);
    lsi_socket_release(s);
    lsi_thread_join(&thread);
    lsi_socket_release(listener);
    lsi_free(from);
    lsi_free(to);
}

LST_TEST(what_goes_through_a_connection_comes_back_unchanged)
{
    char path[64];

    check_echo("127.0.0.1:0");
    check_echo("localhost:0");
    (void)snprintf(path, sizeof path, "unix:/tmp/ls-socket-%ld", (long)getpid());
    check_echo(path);
    LST_CHECK(access(path + strlen("unix:"), F_OK) != 0); // the listener removed it
}

LST_TEST(port_0_becomes_a_real_port_that_nobody_else_gets)
{
    ls_error err = LS_ERROR_INIT;
    lsi_socket *a = NULL, *b = NULL, *c = NULL;
    char expect[64];

    LST_OK(lsi_socket_listen("127.0.0.1:0", &a, &err));
    LST_OK(lsi_socket_listen("127.0.0.1:0", &b, &err));
    LST_CHECK(lsi_socket_port(a) > 0 && lsi_socket_port(a) != lsi_socket_port(b));
    (void)snprintf(expect, sizeof expect, "127.0.0.1:%d", lsi_socket_port(a));
    LST_CHECK(strcmp(lsi_socket_address(a), expect) == 0);
    LST_FAILS(lsi_socket_listen(expect, &c, &err), LS_ALREADY_EXISTS, err, expect);
    lsi_socket_release(a);
    lsi_socket_release(b);
}

/* A listener and both ends of one connection. */
struct pair {
    lsi_socket *listener, *here, *there;
};

static void join_pair(struct pair *p)
{
    ls_error err = LS_ERROR_INIT;

    memset(p, 0, sizeof *p);
    LST_OK(lsi_socket_listen("127.0.0.1:0", &p->listener, &err));
    LST_OK(lsi_socket_connect(lsi_socket_address(p->listener), later(), &p->here, &err));
    LST_OK(lsi_socket_accept(p->listener, later(), &p->there, &err));
}

static void part_pair(struct pair *p)
{
    lsi_socket_release(p->here);
    lsi_socket_release(p->there);
    lsi_socket_release(p->listener);
}

LST_TEST(a_peer_that_closes_is_named_and_sending_to_it_is_no_signal)
{
    ls_error err = LS_ERROR_INIT;
    ls_status st = LS_OK;
    struct pair p;
    char buf[1024] = "";
    size_t got = 9;

    join_pair(&p);
    LST_OK(lsi_socket_send(p.there, "abc", 3, later(), &err));
    lsi_socket_release(p.there);
    p.there = NULL;
    LST_FAILS(lsi_socket_recv(p.here, buf, 5, later(), &err), LS_UNAVAILABLE, err,
              lsi_socket_address(p.listener));
    LST_CHECK(strstr(err.message, "2 bytes") != NULL && memcmp(buf, "abc", 3) == 0);
    LST_OK(lsi_socket_recv_some(p.here, buf, 5, later(), &got, &err));
    LST_CHECK(got == 0);
    for (int i = 0; i < 1000 && st == LS_OK; i++) { // the first may still be taken
        st = lsi_socket_send(p.here, buf, sizeof buf, later(), &err);
    }
    LST_CHECK(st == LS_UNAVAILABLE);
    part_pair(&p);
}

LST_TEST(every_wait_ends_at_its_deadline)
{
    enum { MOST = 1 << 16 };
    ls_error err = LS_ERROR_INIT;
    lsi_socket *none = NULL;
    ls_status st = LS_OK;
    struct pair p;
    char *buf = lsi_alloc(1, MOST);

    join_pair(&p);
    LST_FAILS(lsi_socket_recv(p.here, buf, 1, lsi_deadline_in_ms(5), &err),
              LS_DEADLINE_EXCEEDED, err, lsi_socket_address(p.here));
    LST_FAILS(lsi_socket_accept(p.listener, lsi_deadline_in_ms(5), &none, &err),
              LS_DEADLINE_EXCEEDED, err, lsi_socket_address(p.listener));
    for (int i = 0; i < 10000 && st == LS_OK; i++) { // nobody reads: the buffers fill
        st = lsi_socket_send(p.here, buf, MOST, lsi_deadline_in_ms(5), &err);
    }
    LST_CHECK(st == LS_DEADLINE_EXCEEDED && none == NULL);
    part_pair(&p);
    lsi_free(buf);
}

enum { LARGE = 16 << 20 };

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i * 2654435761u >> 13);
}

static void drain(void *arg)
{
    ls_error err = LS_ERROR_INIT;
    unsigned char *to = lsi_alloc(1, LARGE);
    size_t wrong = 0;

    LST_OK(lsi_socket_recv(arg, to, LARGE, later(), &err));
    for (size_t i = 0; i < LARGE; i++) {
        wrong += to[i] != pattern(i);
    }
    LST_CHECK(wrong == 0);
    lsi_free(to);
}

LST_TEST(a_message_that_the_system_takes_in_pieces_arrives_whole)
{
    ls_error err = LS_ERROR_INIT;
    unsigned char *from = lsi_alloc(1, LARGE);
    lsi_thread thread;
    struct pair p;

    for (size_t i = 0; i < LARGE; i++) {
        from[i] = pattern(i);
    }
    join_pair(&p);
    LST_OK(lsi_thread_start(&thread, drain, p.there, &err, "drain"));
    LST_OK(lsi_socket_send(p.here, from, LARGE, later(), &err));
    lsi_thread_join(&thread);
    part_pair(&p);
    lsi_free(from);
}

static void shut(void *arg)
{
    lsi_socket_shutdown(arg);
}

LST_TEST(a_shutdown_from_another_thread_wakes_the_receiver)
{
    ls_error err = LS_ERROR_INIT;
    lsi_thread thread;
    struct pair p;
    size_t got = 9;
    char c;

    join_pair(&p);
    LST_OK(lsi_thread_start(&thread, shut, p.here, &err, "shut"));
    LST_OK(lsi_socket_recv_some(p.here, &c, 1, later(), &got, &err));
    LST_CHECK(got == 0);
    lsi_thread_join(&thread);
    part_pair(&p);
}

LST_TEST(nobody_listening_is_unavailable)
{
    ls_error err = LS_ERROR_INIT;
    lsi_socket *listener = NULL, *s = NULL;
    char address[64];

    LST_OK(lsi_socket_listen("127.0.0.1:0", &listener, &err));
    (void)snprintf(address, sizeof address, "%s", lsi_socket_address(listener));
    lsi_socket_release(listener);
    LST_FAILS(lsi_socket_connect(address, later(), &s, &err), LS_UNAVAILABLE, err,
              address);
    LST_FAILS(lsi_socket_connect("unix:/nowhere/socket", later(), &s, &err),
              LS_UNAVAILABLE, err, "/nowhere/socket");
    LST_CHECK(s == NULL);
}

LST_TEST(a_path_left_by_a_dead_listener_is_taken_over_and_a_live_one_is_not)
{
    ls_error err = LS_ERROR_INIT;
    lsi_socket *first = NULL, *second = NULL;
    char address[64], away[64];
    const char *path = address + strlen("unix:");

    (void)snprintf(address, sizeof address, "unix:/tmp/ls-left-%ld", (long)getpid());
    (void)snprintf(away, sizeof away, "/tmp/ls-away-%ld", (long)getpid());
    LST_OK(lsi_socket_listen(address, &first, &err));
    LST_FAILS(lsi_socket_listen(address, &second, &err), LS_ALREADY_EXISTS, err, path);
    LST_CHECK(rename(path, away) == 0); // its end does not find the path ...
    lsi_socket_release(first);
    LST_CHECK(rename(away, path) == 0); // ... as if it had been killed
    LST_OK(lsi_socket_listen(address, &second, &err));
    lsi_socket_release(second);
}

LST_TEST(addresses_are_taken_apart_or_refused_with_the_reason)
{
    static const struct {
        const char *text, *host, *word;
        int port;
    } cases[] = {
        {"localhost:2222", "localhost", NULL, 2222},
        {"10.0.0.1:0", "10.0.0.1", NULL, 0},
        {":80", "", NULL, 80},
        {"[::1]:65535", "::1", NULL, 65535},
        {"[fe80::1%eth0]:1", "fe80::1%eth0", NULL, 1},
        {"unix:/tmp/a:b", "/tmp/a:b", NULL, 0},
        {"", NULL, "port is missing", 0},
        {"localhost", NULL, "port is missing", 0},
        {"localhost:", NULL, "port is missing", 0},
        {"localhost:x", NULL, "not a number", 0},
        {"localhost:-1", NULL, "not a number", 0},
        {"localhost:65536", NULL, "larger than 65535", 0},
        {"localhost:99999999999999999999", NULL, "larger than 65535", 0},
        {"::1:22", NULL, "brackets", 0},
        {"[::1", NULL, "not closed", 0},
        {"[::1]", NULL, "after the bracket", 0},
        {"[]:1", NULL, "nothing in the brackets", 0},
        {"unix:", NULL, "path is missing", 0},
    };
    char longest[400];
    lsi_address a;
    ls_error err = LS_ERROR_INIT;
    lsi_socket *s = NULL;

    for (size_t i = 0; i < LSI_COUNT_OF(cases); i++) {
        if (cases[i].word != NULL) {
            LST_FAILS(lsi_address_parse(cases[i].text, &a, &err), LS_INVALID_ARGUMENT,
                      err, cases[i].word);
            LST_CHECK(strstr(err.message, cases[i].text) != NULL);
        } else {
            LST_OK(lsi_address_parse(cases[i].text, &a, &err));
            LST_CHECK(strcmp(a.host, cases[i].host) == 0 && a.port == cases[i].port);
            LST_CHECK(a.is_unix == (strncmp(cases[i].text, "unix:", 5) == 0));
        }
    }
    memset(longest, 'a', sizeof longest);
    memcpy(longest + 380, ":1", 3);
    LST_FAILS(lsi_address_parse(longest, &a, &err), LS_INVALID_ARGUMENT, err, "255");
    memcpy(longest, "unix:/", 6);
    memcpy(longest + 200, "", 1);
    LST_FAILS(lsi_socket_listen(longest, &s, &err), LS_INVALID_ARGUMENT, err, "path has");
}

static ls_status join_once(ls_error *err)
{
    struct pair p = {NULL, NULL, NULL};
    ls_status st = lsi_socket_listen("127.0.0.1:0", &p.listener, err);

    if (st == LS_OK) {
        st = lsi_socket_connect(lsi_socket_address(p.listener), later(), &p.here, err);
    }
    if (st == LS_OK) {
        st = lsi_socket_accept(p.listener, later(), &p.there, err);
    }
    part_pair(&p);
    return st;
}

LST_TEST(connecting_survives_the_failure_of_every_allocation)
{
    lst_every_allocation(join_once);
}

LST_MAIN(LST_CASE(what_goes_through_a_connection_comes_back_unchanged),
         LST_CASE(port_0_becomes_a_real_port_that_nobody_else_gets),
         LST_CASE(a_peer_that_closes_is_named_and_sending_to_it_is_no_signal),
         LST_CASE(every_wait_ends_at_its_deadline),
         LST_CASE(a_message_that_the_system_takes_in_pieces_arrives_whole),
         LST_CASE(a_shutdown_from_another_thread_wakes_the_receiver),
         LST_CASE(nobody_listening_is_unavailable),
         LST_CASE(a_path_left_by_a_dead_listener_is_taken_over_and_a_live_one_is_not),
         LST_CASE(addresses_are_taken_apart_or_refused_with_the_reason),
         LST_CASE(connecting_survives_the_failure_of_every_allocation))
