/*
 * Zip archives: the directory at their end says where each member lies. Nothing in it is
 * believed before it was compared with the file's length.
 *
 * Threads: one at a time.
 */
#ifndef LSI_ARCHIVE_H
#define LSI_ARCHIVE_H
#include "data/file/stream.h"

typedef struct lsi_archive {
    const char *path; /* the caller's */
    lsi_file *file;
    uint64_t size;
    uint8_t *directory;
    uint64_t directory_at; /* in the file */
    size_t directory_size;
} lsi_archive;

enum { LSI_ARCHIVE_STORED = 0, LSI_ARCHIVE_DEFLATED = 8 };

/* A member, as the directory describes it. */
typedef struct lsi_archive_entry {
    uint16_t flags, method;
    uint32_t crc;
    uint64_t packed, size, offset;
    const uint8_t *name; /* in the directory */
    size_t name_len;
} lsi_archive_entry;

/* Opens the file and reads its directory. After a failure there is nothing to close. */
ls_status lsi_archive_open(const char *path, lsi_archive *out, ls_error *err);
void lsi_archive_close(lsi_archive *z);

/* The entry at *at of the directory, 0 at first; moves *at on. LS_OUT_OF_RANGE: there are
 * no more. */
ls_status lsi_archive_next(const lsi_archive *z, size_t *at, lsi_archive_entry *e,
                           ls_error *err);

/* Where the bytes of a member begin; all of them are in the file. */
ls_status lsi_archive_locate(const lsi_archive *z, const lsi_archive_entry *e,
                             uint64_t *at, ls_error *err);

/* Its name without ".npy", the caller's to lsi_free(). NULL: out of memory. */
char *lsi_archive_key(const lsi_archive_entry *e);

/* LS_DATA_LOSS: "PATH is damaged at offset N: WHAT". */
ls_status lsi_archive_damaged(const lsi_archive *z, uint64_t offset, const char *what,
                              ls_error *err);
#endif
