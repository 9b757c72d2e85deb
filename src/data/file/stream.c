/* Streams: reading a file in pieces, and decompressing it with ISA-L. */
#include "data/file/stream.h"

#include "lockstep/record.h"

#include <inttypes.h>
#include <isa-l.h>

enum {
    PIECE = (256 << 10) - 64, // bytes read at once; a buffer has a header of 64
    PIECE_SMALLEST = 4096,    // smaller requests are raised to this
    PACKED = 64 << 10,        // compressed bytes read at once
    PAGE = 4096,              // reads begin at a multiple of this, if possible
    PACKED_RATIO = 32,        // assumed at first for a small compressed file
};
#define PIECE_LARGEST ((size_t)1 << 30)

struct lsi_inflater {
    bool gzip;
    bool begun;   // inside of a member
    bool alien;   // which does not begin like one
    bool dry;     // the file has no more bytes
    bool damaged; // the next bytes do not decompress
    int code;     // ISA-L's error code for them
    uint64_t out; // bytes that this member gave so far
    struct inflate_state state;
    uint8_t packed[PACKED];
};

ls_status lsi_compression_of(const char *name, lsi_compression *out, ls_error *err)
{
    if (name == NULL || *name == '\0') {
        *out = LSI_COMPRESSION_NONE;
    } else if (strcmp(name, "ZLIB") == 0) {
        *out = LSI_COMPRESSION_ZLIB;
    } else if (strcmp(name, "GZIP") == 0) {
        *out = LSI_COMPRESSION_GZIP;
    } else {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_OP,
                             "there is no compression %.60s: use \"\", \"ZLIB\" or "
                             "\"GZIP\"",
                             name);
    }
    return LS_OK;
}

static void begin_member(struct lsi_inflater *z)
{
    uint8_t *next = z->state.next_in;
    const uint32_t avail = z->state.avail_in;

    isal_inflate_init(&z->state);
    z->state.crc_flag = z->gzip ? ISAL_GZIP : ISAL_ZLIB;
    z->state.next_in = next;
    z->state.avail_in = avail;
    z->out = 0;
    z->begun = true;
    z->alien = z->gzip && avail >= 2 && (next[0] != 0x1F || next[1] != 0x8B);
}

/*
 * A TFRecord file that is not compressed begins with a length and its checksum; that a
 * compressed one does has a probability of 2^-32.
 */
static ls_status detect_compression(lsi_file *f, lsi_compression *out, ls_error *err)
{
    uint8_t b[12];
    size_t n = 0;
    const ls_status st = lsi_file_read_at(f, 0, b, sizeof b, &n, err);

    *out = LSI_COMPRESSION_NONE;
    if (st != LS_OK || n < 2 || ls_record_begins(b, n)) {
        return st;
    }
    if (b[0] == 0x1F && b[1] == 0x8B) {
        *out = LSI_COMPRESSION_GZIP;
    } else if ((b[0] & 0x0F) == 8 && (b[0] << 8 | b[1]) % 31 == 0) { // RFC 1950, 2.2
        *out = LSI_COMPRESSION_ZLIB;
    }
    return LS_OK;
}

ls_status lsi_stream_open(const char *path, lsi_compression compression, size_t piece,
                          ls_device *device, lsi_stream **out, ls_error *err)
{
    lsi_stream *s = lsi_alloc(1, sizeof *s);
    ls_status st;

    if (s == NULL) {
        return lsi_fail_memory(err, "a file to read", sizeof *s);
    }
    s->device = device;
    s->piece = piece == 0 ? PIECE : LSI_MAX(piece, (size_t)PIECE_SMALLEST);
    s->piece = LSI_MIN(s->piece, PIECE_LARGEST);
    st = lsi_file_open(path, LSI_FILE_READ, &s->file, err);
    if (st == LS_OK) {
        st = lsi_file_size(s->file, &s->size, err);
    }
    if (st == LS_OK && compression == LSI_COMPRESSION_DETECT) {
        st = detect_compression(s->file, &compression, err);
    }
    if (st == LS_OK && compression != LSI_COMPRESSION_NONE) {
        s->inflater = lsi_alloc(1, sizeof *s->inflater);
        if (s->inflater == NULL) {
            st = lsi_fail_memory(err, "a decompressor", sizeof *s->inflater);
        } else {
            s->inflater->gzip = compression == LSI_COMPRESSION_GZIP;
        }
    }
    if (st != LS_OK) {
        lsi_stream_close(s);
        return st;
    }
    *out = s;
    return LS_OK;
}

void lsi_stream_close(lsi_stream *s)
{
    if (s != NULL) {
        lsi_file_close(s->file);
        lsi_buffer_release(s->buffer);
        lsi_free(s->inflater);
        lsi_free(s);
    }
}

/* After the end of a member; true: the stream has ended. */
static bool member_ended(struct lsi_inflater *z)
{
    z->begun = false;
    return !z->gzip || z->out == 0; // an empty member is the end, as in TensorFlow
}

/* One step of decompression; *ended: the stream has ended. */
static ls_status inflate_some(lsi_stream *s, size_t *got, size_t room, bool *ended,
                              ls_error *err)
{
    struct lsi_inflater *z = s->inflater;
    const uint32_t before = (uint32_t)LSI_MIN(room, (size_t)1 << 30);

    if (z->state.avail_in == 0 && !z->dry) {
        size_t n = 0;
        const ls_status st =
            lsi_file_read_at(s->file, s->read_at, z->packed, sizeof z->packed, &n, err);

        if (st != LS_OK) {
            return st;
        }
        s->read_at += n;
        z->state.next_in = z->packed;
        z->state.avail_in = (uint32_t)n;
        z->dry = n == 0;
    }
    if (!z->begun) {
        if (z->dry) {
            *ended = true;
            return LS_OK;
        }
        begin_member(z);
    }
    z->state.next_out = s->bytes + s->have;
    z->state.avail_out = before;
    z->code = isal_inflate(&z->state);
    *got = before - z->state.avail_out;
    z->out += *got;
    if (z->code < 0 || z->code == ISAL_NEED_DICT) {
        z->damaged = true;
    } else if (z->state.block_state == ISAL_BLOCK_FINISH) {
        *ended = member_ended(z);
    } else if (*got == 0 && z->dry) {
        *ended = true; // the file stops inside a member: no failure
    }
    return LS_OK;
}

/* Appends up to `room` decompressed bytes. */
static ls_status inflate_into(lsi_stream *s, size_t room, ls_error *err)
{
    struct lsi_inflater *z = s->inflater;

    while (room > 0 && !s->ended) {
        size_t got = 0;
        ls_status st;

        if (z->damaged) {
            return lsi_fail(err, LS_DATA_LOSS, -1,
                            "%s does not decompress as %s: its bytes are damaged after "
                            "byte %" PRIu64 " of the contents (code %d)",
                            lsi_file_path(s->file), z->gzip ? "GZIP" : "ZLIB",
                            s->offset + s->have, z->code);
        }
        st = inflate_some(s, &got, room, &s->ended, err);
        if (st != LS_OK) {
            return st;
        }
        s->have += got;
        room -= got;
        if (z->damaged && s->have > 0) {
            return LS_OK; // the good bytes first; the next call fails
        }
    }
    return LS_OK;
}

/* Reads up to `room` bytes, up to a page boundary if possible. */
static ls_status read_into(lsi_stream *s, size_t room, ls_error *err)
{
    const uint64_t pages_end = (s->read_at + room) / PAGE * PAGE;
    size_t got = 0;
    ls_status st;

    if (pages_end > s->read_at) {
        room = (size_t)(pages_end - s->read_at);
    }
    st = lsi_file_read_at(s->file, s->read_at, s->bytes + s->have, room, &got, err);

    if (st == LS_OK) {
        s->read_at += got;
        s->have += got;
        s->ended = got < room;
    }
    return st;
}

/* The least size of a buffer: a piece, or less for a small file. The contents of a
 * compressed file are estimated from its size. */
static size_t least_room(const lsi_stream *s, uint64_t left)
{
    uint64_t room = s->piece;

    if (s->inflater != NULL && s->size < SIZE_MAX / PACKED_RATIO) {
        room = LSI_MIN(room, LSI_MAX(s->size * PACKED_RATIO, (uint64_t)PIECE_SMALLEST));
    } else if (s->inflater == NULL && left > 0 && left < s->piece) {
        // more than the file has, so that the first read finds its end
        room = (s->read_at + left) / PAGE * PAGE + PAGE - s->read_at;
        room = LSI_MIN(room + s->have, (uint64_t)LSI_MAX(s->piece, s->have + 1));
    }
    return (size_t)room;
}

/*
 * The size of a buffer for `want` bytes: `want` if the file is that large, so that a
 * wrong length does not allocate memory, and at least twice the former size: a search for
 * the end of a line asks for one more byte each time.
 */
static size_t room_for(const lsi_stream *s, size_t want)
{
    const uint64_t left = s->size > s->read_at ? s->size - s->read_at : 0;
    const size_t twice = s->have < SIZE_MAX / 2 ? 2 * s->have : s->have;
    size_t room = LSI_MAX(least_room(s, left), twice);

    if (s->inflater == NULL && want > room && left > room - s->have) {
        room = left > SIZE_MAX - s->have ? want : LSI_MIN(s->have + (size_t)left, want);
    }
    return LSI_MAX(room, twice);
}

/* Makes room after the unread bytes, which are moved to the front of a buffer. */
static ls_status make_room(lsi_stream *s, size_t want, ls_error *err)
{
    const size_t room = room_for(s, want);
    lsi_buffer *buf = s->buffer;

    if (buf != NULL && atomic_load(&buf->refs) == 1 && buf->bytes >= room) {
        if (s->have > 0) {
            memmove(buf->data, s->bytes, s->have);
        }
    } else {
        buf = lsi_buffer_new(s->device, room);
        if (buf == NULL) {
            return lsi_fail(err, LS_RESOURCE_EXHAUSTED, -1,
                            "out of memory for %zu bytes of %s", room,
                            lsi_file_path(s->file));
        }
        if (s->have > 0) {
            memcpy(buf->data, s->bytes, s->have);
        }
        lsi_buffer_release(s->buffer);
        s->buffer = buf;
    }
    s->bytes = buf->data;
    return LS_OK;
}

ls_status lsi_stream_more(lsi_stream *s, size_t want, ls_error *err)
{
    while (s->have < want && !s->ended) {
        ls_status st = make_room(s, want, err);

        if (st == LS_OK) {
            const size_t room = s->buffer->bytes - s->have;

            st = s->inflater != NULL ? inflate_into(s, room, err)
                                     : read_into(s, room, err);
        }
        if (st != LS_OK) {
            return st;
        }
    }
    return LS_OK;
}

/* Bytes of an uncompressed file are passed over without reading them. */
static void skip_unread(lsi_stream *s, uint64_t n, uint64_t *passed)
{
    const uint64_t left = s->size > s->read_at ? s->size - s->read_at : 0;
    const uint64_t step = LSI_MIN(n, left);

    s->read_at += step;
    s->offset += step;
    *passed += step;
}

ls_status lsi_stream_skip(lsi_stream *s, uint64_t n, uint64_t *passed, ls_error *err)
{
    *passed = 0;
    for (;;) {
        const size_t step = (size_t)LSI_MIN(n - *passed, (uint64_t)s->have);
        ls_status st;

        if (step > 0) {
            lsi_stream_pass(s, step);
            *passed += step;
        }
        if (*passed < n && s->inflater == NULL && !s->ended) {
            skip_unread(s, n - *passed, passed);
        }
        if (*passed == n || s->ended) {
            return LS_OK;
        }
        st = lsi_stream_more(s, 1, err);
        if (st != LS_OK) {
            return st;
        }
    }
}

const char *lsi_stream_cut_off(const lsi_stream *s)
{
    const struct lsi_inflater *z = s->inflater;

    return z == NULL || !z->begun || z->alien || !z->dry ? NULL
           : z->gzip                                     ? "GZIP"
                                                         : "ZLIB";
}

ls_status lsi_inflate_exactly(const uint8_t *in, size_t in_len, void *to, size_t len,
                              const char *path, ls_error *err)
{
    struct inflate_state *z = lsi_alloc(1, sizeof *z);
    uint8_t beyond; // one more byte of output means that the length was wrong
    int code = ISAL_DECOMP_OK;

    if (z == NULL) {
        return lsi_fail_memory(err, "a decompressor", sizeof *z);
    }
    isal_inflate_init(z);
    z->next_in = (uint8_t *)(uintptr_t)in; // only read
    z->next_out = to;
    while (code == ISAL_DECOMP_OK && z->block_state != ISAL_BLOCK_FINISH) {
        const size_t room = len - (size_t)(z->next_out - (uint8_t *)to);
        uint32_t given, asked;

        z->avail_in = (uint32_t)LSI_MIN(in_len, (size_t)1 << 30);
        z->avail_out = (uint32_t)LSI_MIN(room, (size_t)1 << 30);
        given = z->avail_in;
        asked = z->avail_out;
        if (room == 0) {
            uint8_t *end = z->next_out;

            z->next_out = &beyond; // only the end of the stream is left
            z->avail_out = 1;
            code = isal_inflate(z);
            code = z->avail_out == 0 ? ISAL_OUT_OVERFLOW : code;
            z->next_out = end;
            if (z->block_state != ISAL_BLOCK_FINISH && given == z->avail_in) {
                break;
            }
        } else {
            code = isal_inflate(z);
            if (given == z->avail_in && asked == z->avail_out) {
                break; // neither input nor output is left
            }
        }
        in_len -= given - z->avail_in;
    }
    if (code != ISAL_DECOMP_OK || z->block_state != ISAL_BLOCK_FINISH ||
        z->next_out != (uint8_t *)to + len) {
        lsi_free(z);
        return lsi_fail(err, LS_DATA_LOSS, -1,
                        "%s does not decompress to the %zu bytes that it promises", path,
                        len);
    }
    lsi_free(z);
    return LS_OK;
}
