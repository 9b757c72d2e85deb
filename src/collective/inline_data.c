/*
 * Small calls: a rank's data is copied into its entry beside the fingerprint, and every
 * rank computes the whole result from all entries. The ranks wait for each other once, no
 * rank reads another's buffers, and all add in the same order.
 */
#include "collective/call.h"

enum { STEP = 8 }; // parts begin at a multiple: aligned for any dtype

static size_t rounded(size_t bytes)
{
    return (bytes + STEP - 1) / STEP * STEP;
}

/* Bytes of an element of a piece: of all partial sums of a rank that has the most. */
static size_t piece_size(const lsi_call *call)
{
    return lsi_call_has_ids(call) ? (size_t)call->partials * lsi_wide_size(call->dtype)
                                  : lsi_call_size(call);
}

size_t lsi_inline_size(const lsi_call *call, int ranks)
{
    size_t bytes = 0;

    if (call->piece_count == 0) {
        return rounded(lsi_call_bytes(call, ranks));
    }
    for (size_t i = 0; i < call->piece_count; i++) {
        bytes += rounded(call->pieces[i].count * piece_size(call));
    }
    return bytes;
}

static void copy_bytes(void *to, const void *from, size_t bytes)
{
    if (bytes == STEP) { // a number or a pointer: the most frequent size
        memcpy(to, from, STEP);
    } else if (bytes > 0 && to != from) {
        memcpy(to, from, bytes);
    }
}

void lsi_inline_send(const lsi_call *call, int ranks, int r, unsigned char *payload)
{
    const size_t size = lsi_call_size(call);
    const size_t given = lsi_call_has_ids(call) ? (size_t)lsi_call_partials_of(call, r) *
                                                      lsi_wide_size(call->dtype)
                                                : size;

    for (size_t i = 0; i < call->piece_count; i++) {
        copy_bytes(payload, call->pieces[i].from, call->pieces[i].count * given);
        payload += rounded(call->pieces[i].count * piece_size(call));
    }
    if (call->piece_count > 0 || (call->kind == LSI_CALL_BROADCAST && call->peer != r)) {
        return;
    }
    if (call->counts != NULL) {
        copy_bytes(payload, call->from, call->counts[r] * size);
    } else {
        copy_bytes(payload, call->from, lsi_call_bytes(call, ranks));
    }
}

static void reduce_payloads(const lsi_call *call, int ranks,
                            const unsigned char *const *payload, size_t at, void *to,
                            size_t count, const void **room)
{
    for (int r = 0; r < ranks; r++) {
        room[r] = payload[r] + at;
    }
    if (count > 0) {
        lsi_reduce_tree(call->op, room, ranks, to, count, call->dtype);
    }
}

static void reduce_partials(const lsi_call *call, int ranks,
                            const unsigned char *const *payload, size_t at,
                            const lsi_comm_piece *piece, const void **room)
{
    const lsi_reduction sum = lsi_call_partials_reduction(call, ranks);
    void *to = piece->to;

    for (int r = 0; r < ranks; r++) {
        room[r] = payload[r] + at;
    }
    if (piece->count > 0) {
        lsi_partials_reduce(&sum, room, ranks, call->ids, piece->count, &to, 1,
                            piece->count);
    }
}

static void reduce_pieces(const lsi_call *call, int ranks,
                          const unsigned char *const *payload, const void **room)
{
    size_t at = 0;

    for (size_t i = 0; i < call->piece_count; i++) {
        const lsi_comm_piece *piece = &call->pieces[i];

        if (lsi_call_has_ids(call)) {
            reduce_partials(call, ranks, payload, at, piece, room);
        } else {
            reduce_payloads(call, ranks, payload, at, piece->to, piece->count, room);
        }
        at += rounded(piece->count * piece_size(call));
    }
}

static void gather_payloads(const lsi_call *call, int ranks,
                            const unsigned char *const *payload)
{
    const size_t size = lsi_call_size(call);
    char *to = call->to;

    for (int q = 0; q < ranks; q++) {
        const size_t bytes =
            (call->counts != NULL ? call->counts[q] : call->count) * size;

        copy_bytes(to, payload[q], bytes);
        to += bytes;
    }
}

void lsi_inline_finish(const lsi_call *call, int ranks, int r,
                       const unsigned char *const *payload, const void **room)
{
    const size_t bytes = call->count * lsi_call_size(call);

    switch (call->kind) {
    case LSI_CALL_ALL_REDUCE:
        if (call->piece_count > 0) {
            reduce_pieces(call, ranks, payload, room);
        } else {
            reduce_payloads(call, ranks, payload, 0, call->to, call->count, room);
        }
        break;
    case LSI_CALL_REDUCE:
        if (r == call->peer) {
            reduce_payloads(call, ranks, payload, 0, call->to, call->count, room);
        }
        break;
    case LSI_CALL_REDUCE_SCATTER:
        reduce_payloads(call, ranks, payload, (size_t)r * bytes, call->to, call->count,
                        room);
        break;
    case LSI_CALL_BROADCAST:
        if (r != call->peer) {
            copy_bytes(call->to, payload[call->peer], bytes);
        }
        break;
    case LSI_CALL_ALL_GATHER:
        gather_payloads(call, ranks, payload);
        break;
    case LSI_CALL_ALL_TO_ALL:
        for (int q = 0; q < ranks; q++) {
            copy_bytes((char *)call->to + (size_t)q * bytes,
                       payload[q] + (size_t)r * bytes, bytes);
        }
        break;
    case LSI_CALL_MEET:
        if (call->to != NULL) {
            gather_payloads(call, ranks, payload);
        }
        break;
    case LSI_CALL_BARRIER:
    case LSI_CALL_BATCH:
    case LSI_CALL_DECLINE:
    case LSI_CALL_SEND:
    case LSI_CALL_RECV:
        break;
    }
}
