/*
 * Files. Every failure names the path and has the message of the system. Reads are
 * complete (a short one is the end of the file) and go on after signals.
 *
 * Threads: a file is used by one at a time, but for lsi_file_read_at() and its kin.
 */
#ifndef LSI_FILE_H
#define LSI_FILE_H
#include "base/base.h"

typedef struct lsi_file lsi_file;

typedef enum lsi_file_mode {
    LSI_FILE_READ,
    LSI_FILE_WRITE,  /* created if missing, else truncated */
    LSI_FILE_CREATE, /* LS_ALREADY_EXISTS if anything has the name, also a link */
    LSI_FILE_APPEND  /* created if missing */
} lsi_file_mode;

/* A piece of memory to read into. */
typedef struct lsi_file_piece {
    void *ptr;
    size_t len;
} lsi_file_piece;

/* A folder is LS_FAILED_PRECONDITION. */
ls_status lsi_file_open(const char *path, lsi_file_mode mode, lsi_file **out,
                        ls_error *err);
void lsi_file_close(lsi_file *file); /* NULL is allowed */
const char *lsi_file_path(const lsi_file *file);
ls_status lsi_file_size(lsi_file *file, uint64_t *out, ls_error *err);

/* Up to `len` bytes from `offset` on; *got is less only where the file ends. */
ls_status lsi_file_read_at(lsi_file *file, uint64_t offset, void *to, size_t len,
                           size_t *got, ls_error *err);

/* All `len` bytes. LS_DATA_LOSS: the file ends before. */
ls_status lsi_file_read_exactly(lsi_file *file, uint64_t offset, void *to, size_t len,
                                ls_error *err);

/* The same into several pieces, with few system calls. */
ls_status lsi_file_read_pieces(lsi_file *file, uint64_t offset,
                               const lsi_file_piece *pieces, size_t count, size_t *got,
                               ls_error *err);
ls_status lsi_file_write(lsi_file *file, const void *from, size_t len, ls_error *err);
ls_status lsi_file_sync(lsi_file *file, ls_error *err); /* to the disk itself */

/*
 * The whole file, which is the caller's to lsi_free(); a NUL that is not counted follows.
 * LS_RESOURCE_EXHAUSTED: it has more than `max_bytes`.
 */
ls_status lsi_file_read(const char *path, size_t max_bytes, void **data, size_t *len,
                        ls_error *err);

/*
 * Replaces the file as a whole: a reader that opens `path`, now or after a crash, finds
 * the old contents or the new ones, never a part. On failure the old ones are kept.
 */
ls_status lsi_file_write_atomic(const char *path, const void *data, size_t len,
                                ls_error *err);

/* A file or an empty folder. */
ls_status lsi_file_remove(const char *path, ls_error *err);

/* LS_ALREADY_EXISTS if there is one. */
ls_status lsi_folder_create(const char *path, ls_error *err);

/* Names in a folder, sorted by their bytes, without "." and "..". */
typedef struct lsi_names {
    char **names;
    size_t count;
} lsi_names;
ls_status lsi_folder_list(const char *path, lsi_names *out, ls_error *err);
void lsi_names_release(lsi_names *names);
#endif
