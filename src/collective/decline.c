/*
 * Declined calls: the failure that a rank gives in place of data, as plain bytes: four
 * numbers, the file and the message, each of these with a NUL at its end.
 */
#include "collective/call.h"

struct numbers {
    int32_t code, kind, rank, line;
};

static size_t append_text(unsigned char *bytes, size_t at, const char *text)
{
    const size_t len = strlen(text) + 1;

    memcpy(bytes + at, text, len);
    return at + len;
}

size_t lsi_reason_write(const ls_error *why, unsigned char *bytes)
{
    const struct numbers n = {(int32_t)why->code, (int32_t)why->kind, why->rank,
                              why->line};
    size_t at = sizeof n;

    _Static_assert(sizeof n + sizeof why->file + sizeof why->message <= LSI_REASON_MOST,
                   "a failure fits");
    memcpy(bytes, &n, sizeof n);
    at = append_text(bytes, at, why->file);
    return append_text(bytes, at, why->message);
}

/* Copies the text at *at and moves behind it; false: it has no end, or is too long. */
static bool take_text(const unsigned char *bytes, size_t size, size_t *at, char *text,
                      size_t room)
{
    const unsigned char *end = memchr(bytes + *at, '\0', size - *at);
    const size_t len = end != NULL ? (size_t)(end - bytes) - *at + 1 : 0;

    if (end == NULL || len > room) {
        return false;
    }
    memcpy(text, bytes + *at, len);
    *at += len;
    return true;
}

void lsi_reason_read(const unsigned char *bytes, size_t size, int from, ls_error *why)
{
    ls_error read = LS_ERROR_INIT;
    struct numbers n = {0};
    size_t at = sizeof n;

    if (size > sizeof n) {
        memcpy(&n, bytes, sizeof n);
    }
    if (n.code <= LS_OK || n.code > LS_UNAUTHENTICATED || n.kind < LS_KIND_OP ||
        n.kind > LS_KIND_RUNTIME ||
        !take_text(bytes, size, &at, read.file, sizeof read.file) ||
        !take_text(bytes, size, &at, read.message, sizeof read.message)) {
        (void)lsi_fail(why, LS_DATA_LOSS, from,
                       "rank %d declined a call, and its reason of %zu bytes cannot be "
                       "read",
                       from, size);
        return;
    }
    read.code = (ls_status)n.code;
    read.kind = (ls_kind)n.kind;
    read.rank = n.rank >= 0 ? n.rank : from;
    read.line = n.line;
    (void)lsi_fail_again(why, &read);
}
