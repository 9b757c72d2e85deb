/* Calls: their names, their fingerprints, and the error when two do not agree. */
#include "collective/call.h"

#include "base/hash.h"

#include <stdio.h>

const char *lsi_call_name(lsi_call_kind kind)
{
    static const char *const names[] = {
        [LSI_CALL_ALL_REDUCE] = "all_reduce",
        [LSI_CALL_REDUCE] = "reduce",
        [LSI_CALL_BROADCAST] = "broadcast",
        [LSI_CALL_ALL_GATHER] = "all_gather",
        [LSI_CALL_REDUCE_SCATTER] = "reduce_scatter",
        [LSI_CALL_ALL_TO_ALL] = "all_to_all",
        [LSI_CALL_BARRIER] = "barrier",
        [LSI_CALL_MEET] = "a meeting",
        [LSI_CALL_BATCH] = "a batch of calls",
        [LSI_CALL_DECLINE] = "a declined call",
        [LSI_CALL_SEND] = "send",
        [LSI_CALL_RECV] = "recv",
    };

    return names[kind];
}

const char *lsi_call_title(const lsi_call *call)
{
    return call->tag != NULL ? call->tag : lsi_call_name(call->kind);
}

size_t lsi_call_bytes(const lsi_call *call, int ranks)
{
    const size_t size = lsi_call_size(call);
    size_t most = call->count;

    switch (call->kind) {
    case LSI_CALL_ALL_GATHER:
        for (int r = 0; call->counts != NULL && r < ranks; r++) {
            most = r == 0 ? call->counts[r] : LSI_MAX(most, call->counts[r]);
        }
        return most * size;
    case LSI_CALL_REDUCE_SCATTER:
    case LSI_CALL_ALL_TO_ALL:
        return call->count * size * (size_t)ranks;
    case LSI_CALL_BARRIER:
        return 0;
    case LSI_CALL_MEET:
        return sizeof(void *);
    case LSI_CALL_ALL_REDUCE:
    case LSI_CALL_REDUCE:
    case LSI_CALL_BROADCAST:
    case LSI_CALL_BATCH:
    case LSI_CALL_DECLINE:
    case LSI_CALL_SEND:
    case LSI_CALL_RECV:
        break;
    }
    return call->count * size;
}

/* Hashes the end of a path only: that tells files apart, and a long path costs time. */
static uint32_t site_of(lsi_comm_site site)
{
    const size_t len = site.file != NULL ? strlen(site.file) : 0;
    const size_t some = LSI_MIN(len, sizeof(uint64_t));
    uint64_t end = 0;

    memcpy(&end, site.file != NULL ? site.file + len - some : "", some);
    end = (end ^ (uint64_t)len << 32 ^ (uint32_t)site.line) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(end >> 32);
}

/*
 * Root, algorithm and subdivisions as they are; counts, pieces, ids and tags as a hash.
 * Most calls have none of these and cost no hashing.
 */
static uint64_t detail_of(const lsi_call *call, int ranks)
{
    uint64_t detail = (uint64_t)(uint32_t)(call->peer + 1) |
                      (uint64_t)call->algorithm << 32 |
                      (uint64_t)(uint32_t)call->subdivisions << 40;

    if (call->counts != NULL) {
        detail ^=
            lsi_hash(LSI_HASH_INIT, call->counts, (size_t)ranks * sizeof *call->counts);
    }
    detail ^= call->piece_count > 0 ? LSI_HASH_INIT : 0;
    for (size_t i = 0; i < call->piece_count; i++) {
        detail = lsi_hash(detail, &call->pieces[i].count, sizeof call->pieces[i].count);
    }
    if (lsi_call_has_ids(call)) {
        detail = lsi_hash_word(detail, (uint64_t)call->ids);
    }
    if (call->tag != NULL) {
        detail = lsi_hash(detail ^ LSI_HASH_INIT, call->tag, strlen(call->tag));
    }
    if (call->detail != 0) {
        detail = lsi_hash(detail, &call->detail, sizeof call->detail);
    }
    return detail;
}

lsi_fingerprint lsi_fingerprint_of(const lsi_call *call, int ranks)
{
    return (lsi_fingerprint){
        .what = (uint16_t)((unsigned)call->kind | (unsigned)call->op << 8),
        .dtype = (uint16_t)call->dtype,
        .site = site_of(call->site),
        .count = call->count,
        .detail = detail_of(call, ranks)};
}

bool lsi_fingerprint_equal(const lsi_fingerprint *a, const lsi_fingerprint *b)
{
    return a->group == b->group && a->generation == b->generation &&
           a->sequence == b->sequence && a->what == b->what && a->dtype == b->dtype &&
           a->count == b->count && a->detail == b->detail;
}

/* "SUM all_reduce of 10 float32 at train.c:40" */
static void describe(const lsi_call *call, char *out, size_t size)
{
    char what[96];

    if (call->tag != NULL && lsi_call_reduces(call)) {
        (void)snprintf(what, sizeof what, "\"%.40s\" (%s of %zu %s)", call->tag,
                       ls_reduce_name(call->op), call->count, ls_dtype_name(call->dtype));
    } else if (call->tag != NULL) {
        (void)snprintf(what, sizeof what, "\"%.60s\"", call->tag);
    } else if (call->kind == LSI_CALL_BARRIER) {
        (void)snprintf(what, sizeof what, "barrier");
    } else if (call->kind == LSI_CALL_BATCH) {
        (void)snprintf(what, sizeof what, "a batch of %zu calls", call->count);
    } else {
        (void)snprintf(what, sizeof what, "%s%s%s of %zu %s",
                       lsi_call_reduces(call) ? ls_reduce_name(call->op) : "",
                       lsi_call_reduces(call) ? " " : "", lsi_call_name(call->kind),
                       call->count, ls_dtype_name(call->dtype));
    }
    (void)snprintf(out, size, "%s at %.80s:%d", what,
                   call->site.file != NULL ? call->site.file : "?", call->site.line);
}

/* What differs, the most important first, and the status code of the specification. */
static ls_status differs(const lsi_call *a, const lsi_call *b, const char **what)
{
    if (a->kind != b->kind || (lsi_call_reduces(a) && a->op != b->op)) {
        *what = "operation mismatch";
        return LS_INTERNAL;
    }
    if (strcmp(lsi_call_title(a), lsi_call_title(b)) != 0) {
        *what = "operation mismatch";
        return LS_INTERNAL;
    }
    if (a->dtype != b->dtype) {
        *what = "dtype mismatch";
        return LS_INTERNAL;
    }
    if (a->peer != b->peer) {
        *what = "root mismatch";
        return LS_INTERNAL;
    }
    if (a->ids != b->ids) {
        *what = "ids mismatch";
        return LS_INTERNAL;
    }
    if (a->count == b->count &&
        (a->algorithm != b->algorithm || a->subdivisions != b->subdivisions)) {
        *what = "algorithm mismatch";
        return LS_INVALID_ARGUMENT;
    }
    if (a->detail != b->detail && a->count == b->count) {
        *what = "detail mismatch";
        return LS_INTERNAL;
    }
    *what = a->kind == LSI_CALL_BATCH ? "length mismatch" : "shape mismatch";
    return LS_INVALID_ARGUMENT;
}

ls_status lsi_mismatch(ls_error *err, const lsi_call *first, int r, const lsi_call *other)
{
    const char *what = NULL;
    const ls_status code = differs(first, other, &what);
    char a[192], b[192];

    describe(first, a, sizeof a);
    describe(other, b, sizeof b);
    if (first->peer != other->peer && first->kind == other->kind) {
        return lsi_fail(err, code, r,
                        "%s: rank 0 calls %s with root %d, rank %d %s with "
                        "root %d",
                        what, a, first->peer, r, b, other->peer);
    }
    if (first->ids != other->ids && first->kind == other->kind) {
        return lsi_fail(err, code, r,
                        "%s: rank 0 calls %s with %d ids per rank, rank %d %s with %d",
                        what, a, first->ids, r, b, other->ids);
    }
    if (first->algorithm != other->algorithm && first->kind == other->kind &&
        first->count == other->count) {
        return lsi_fail(err, code, r, "%s: rank 0 calls %s (%s), rank %d %s (%s)", what,
                        a, lsi_algorithm_name(first->algorithm), r, b,
                        lsi_algorithm_name(other->algorithm));
    }
    return lsi_fail(err, code, r,
                    "%s: rank 0 calls %s, rank %d calls %s; every rank makes the same "
                    "calls in the same order",
                    what, a, r, b);
}

static const ls_error none = LS_ERROR_INIT;

void lsi_failure_init(lsi_failure *f)
{
    atomic_init(&f->set, false);
    lsi_mutex_init(&f->lock);
    f->why = none;
}

void lsi_failure_destroy(lsi_failure *f)
{
    lsi_mutex_destroy(&f->lock);
}

void lsi_failure_forget(lsi_failure *f)
{
    lsi_mutex_lock(&f->lock);
    atomic_store(&f->set, false);
    f->why = none;
    lsi_mutex_unlock(&f->lock);
}

void lsi_failure_set(lsi_failure *f, const ls_error *why, int rank)
{
    lsi_mutex_lock(&f->lock);
    if (!atomic_load(&f->set)) {
        (void)lsi_fail_again(&f->why, why);
        if (f->why.rank < 0) {
            f->why.rank = rank;
        }
        atomic_store(&f->set, true);
    }
    lsi_mutex_unlock(&f->lock);
}

bool lsi_failure_get(lsi_failure *f, ls_error *why)
{
    if (!atomic_load_explicit(&f->set, memory_order_acquire)) {
        return false;
    }
    if (why != NULL) {
        (void)lsi_fail_again(why, &f->why);
    }
    return true;
}
