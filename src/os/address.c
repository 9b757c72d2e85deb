/* Parses the address of a socket. */
#include "os/socket.h"

static ls_status wrong(ls_error *err, const char *text, const char *what)
{
    return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                    "address \"%.200s\": %s; write it like \"10.0.0.1:2222\", "
                    "\"[::1]:2222\" or \"unix:/tmp/socket\"",
                    text, what);
}

static ls_status copy_host(const char *text, const char *from, size_t len,
                           lsi_address *out, ls_error *err)
{
    if (len >= sizeof out->host) {
        return wrong(err, text, "the host has more than 255 characters");
    }
    memcpy(out->host, from, len);
    out->host[len] = '\0';
    return LS_OK;
}

static ls_status take_port(const char *text, const char *from, int *out, ls_error *err)
{
    int port = 0;

    if (*from == '\0') {
        return wrong(err, text, "the port is missing");
    }
    for (; *from != '\0'; from++) {
        if (*from < '0' || *from > '9') {
            return wrong(err, text, "the port is not a number");
        }
        port = port * 10 + (*from - '0');
        if (port > 65535) {
            return wrong(err, text, "the port is larger than 65535");
        }
    }
    *out = port;
    return LS_OK;
}

ls_status lsi_address_parse(const char *text, lsi_address *out, ls_error *err)
{
    const char *host = text, *colon;
    size_t len;
    ls_status st;

    memset(out, 0, sizeof *out);
    if (strncmp(text, "unix:", 5) == 0) {
        out->is_unix = true;
        return text[5] != '\0' ? copy_host(text, text + 5, strlen(text + 5), out, err)
                               : wrong(err, text, "the path is missing");
    }
    if (text[0] == '[') {
        const char *end = strchr(text, ']');

        if (end == NULL) {
            return wrong(err, text, "the bracket is not closed");
        }
        host = text + 1;
        len = (size_t)(end - host);
        colon = end + 1;
        if (len == 0) {
            return wrong(err, text, "there is nothing in the brackets");
        }
        if (*colon != ':') {
            return wrong(err, text, "\":port\" is missing after the bracket");
        }
    } else {
        colon = strrchr(text, ':');
        if (colon == NULL) {
            return wrong(err, text, "the port is missing");
        }
        len = (size_t)(colon - host);
        if (memchr(host, ':', len) != NULL) {
            return wrong(err, text, "an IPv6 address stands in brackets");
        }
    }
    st = copy_host(text, host, len, out, err);
    return st == LS_OK ? take_port(text, colon + 1, &out->port, err) : st;
}
