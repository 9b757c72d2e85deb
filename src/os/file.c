/* Files: reading, writing, atomic replacement. */
#ifdef __linux__
#define _DEFAULT_SOURCE // NOLINT(bugprone-reserved-identifier): preadv
#elif defined(__APPLE__)
#define _DARWIN_C_SOURCE // NOLINT(bugprone-reserved-identifier): preadv, F_FULLFSYNC
#endif
#include "os/file.h"

#include "os/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    FIRST_READ = 64 << 10, // for files that do not know their size (/proc, pipes)
    MOST_PIECES = 64,      // in one system call
    MOST_NAMES = 8,        // tried for a temporary file
};
#define MOST_AT_ONCE ((size_t)1 << 30) // systems reject more than 2 GiB

struct lsi_file {
    int fd;
    char *path;
};

/* Opens `path`, whatever signals come; -1 with errno. */
static int open_fd(const char *path, int flags)
{
    int fd;

    do {
        fd = open(path, flags | O_CLOEXEC, 0666);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

ls_status lsi_file_open(const char *path, lsi_file_mode mode, lsi_file **out,
                        ls_error *err)
{
    static const int flags[] = {
        [LSI_FILE_READ] = O_RDONLY,
        [LSI_FILE_WRITE] = O_WRONLY | O_CREAT | O_TRUNC,
        [LSI_FILE_CREATE] = O_WRONLY | O_CREAT | O_EXCL,
        [LSI_FILE_APPEND] = O_WRONLY | O_CREAT | O_APPEND,
    };
    lsi_file *file = lsi_alloc(1, sizeof *file);
    struct stat info;
    ls_status st;

    if (file == NULL) {
        return lsi_fail_memory(err, "an open file", sizeof *file);
    }
    file->fd = -1;
    file->path = lsi_strdup(path);
    if (file->path == NULL) {
        st = lsi_fail_memory(err, "the path of a file", strlen(path) + 1);
        goto fail;
    }
    file->fd = open_fd(path, flags[mode]);
    if (file->fd < 0) {
        st = lsi_fail_errno(err, errno, "cannot open %s", path);
        goto fail;
    }
    if (fstat(file->fd, &info) != 0) {
        st = lsi_fail_errno(err, errno, "cannot open %s", path);
        goto fail;
    }
    if (S_ISDIR(info.st_mode)) { // Linux opens it and fails at the first read
        st = lsi_fail_errno(err, EISDIR, "cannot open %s", path);
        goto fail;
    }
    *out = file;
    return LS_OK;
fail:
    lsi_file_close(file);
    return st;
}

void lsi_file_close(lsi_file *file)
{
    if (file == NULL) {
        return;
    }
    if (file->fd >= 0) {
        (void)close(file->fd); // what has to be on the disk was synced before
    }
    lsi_free(file->path);
    lsi_free(file);
}

const char *lsi_file_path(const lsi_file *file)
{
    return file->path;
}

ls_status lsi_file_size(lsi_file *file, uint64_t *out, ls_error *err)
{
    struct stat info;

    if (fstat(file->fd, &info) != 0) {
        return lsi_fail_errno(err, errno, "cannot ask for the size of %s", file->path);
    }
    *out = (uint64_t)info.st_size;
    return LS_OK;
}

ls_status lsi_file_read_at(lsi_file *file, uint64_t offset, void *to, size_t len,
                           size_t *got, ls_error *err)
{
    const lsi_file_piece piece = {to, len};

    return lsi_file_read_pieces(file, offset, &piece, 1, got, err);
}

ls_status lsi_file_read_exactly(lsi_file *file, uint64_t offset, void *to, size_t len,
                                ls_error *err)
{
    size_t got = 0;
    const ls_status st = lsi_file_read_at(file, offset, to, len, &got, err);

    if (st == LS_OK && got < len) {
        return lsi_fail(err, LS_DATA_LOSS, -1,
                        "%s ends at byte %" PRIu64 ": %zu of the %zu bytes from %" PRIu64
                        " on are missing; the file was cut",
                        file->path, offset + got, len - got, len, offset);
    }
    return st;
}

/* As many of the pieces as one call takes, the first without its first `skip` bytes. */
static int gather(const lsi_file_piece *pieces, size_t count, size_t skip,
                  struct iovec *iov)
{
    size_t room = MOST_AT_ONCE;
    int n = 0;

    for (size_t i = 0; i < count && n < MOST_PIECES && room > 0; i++) {
        const size_t len = LSI_MIN(pieces[i].len - skip, room);

        if (len > 0) {
            iov[n].iov_base = (char *)pieces[i].ptr + skip;
            iov[n].iov_len = len;
            n++;
        }
        room -= len;
        skip = 0;
    }
    return n;
}

ls_status lsi_file_read_pieces(lsi_file *file, uint64_t offset,
                               const lsi_file_piece *pieces, size_t count, size_t *got,
                               ls_error *err)
{
    size_t done = 0, skip = 0;

    for (;;) {
        struct iovec iov[MOST_PIECES];
        int n;
        ssize_t r;

        while (count > 0 && skip >= pieces->len) { // pieces that are full
            skip -= pieces->len;
            pieces++;
            count--;
        }
        n = gather(pieces, count, skip, iov);
        if (n == 0) {
            break;
        }
        if (offset + done > (uint64_t)INT64_MAX) {
            return lsi_fail_errno(err, EINVAL, "cannot read %s", file->path);
        }
        r = preadv(file->fd, iov, n, (off_t)(offset + done));
        if (r < 0 && errno == EINTR) {
            continue;
        }
        if (r < 0) {
            return lsi_fail_errno(err, errno, "cannot read %s at byte %" PRIu64,
                                  file->path, offset + done);
        }
        if (r == 0) {
            break; // the end of the file
        }
        done += (size_t)r;
        skip += (size_t)r;
    }
    *got = done;
    return LS_OK;
}

ls_status lsi_file_write(lsi_file *file, const void *from, size_t len, ls_error *err)
{
    const char *p = from;

    while (len > 0) {
        const ssize_t n = write(file->fd, p, LSI_MIN(len, MOST_AT_ONCE));

        if (n < 0 && errno != EINTR) {
            return lsi_fail_errno(err, errno, "cannot write %zu bytes to %s", len,
                                  file->path);
        }
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
    return LS_OK;
}

/* Files and folders alike; some file systems cannot and say EINVAL. */
static int sync_fd(int fd)
{
    int rc;

    do {
#ifdef F_FULLFSYNC
        rc = fcntl(fd, F_FULLFSYNC) == 0 ? 0
                                         : fsync(fd); // else the drive's cache keeps it
#else
        rc = fsync(fd);
#endif
    } while (rc != 0 && errno == EINTR);
    return rc != 0 && errno != EINVAL ? -1 : 0;
}

ls_status lsi_file_sync(lsi_file *file, ls_error *err)
{
    return sync_fd(file->fd) == 0
               ? LS_OK
               : lsi_fail_errno(err, errno, "cannot bring %s to the disk", file->path);
}

static ls_status too_large(const char *path, size_t max_bytes, ls_error *err)
{
    return lsi_fail(err, LS_RESOURCE_EXHAUSTED, -1,
                    "%s has more than the %zu bytes that are allowed for it", path,
                    max_bytes);
}

/* Reads to the end of an open file, which may not know its size. */
static ls_status read_all(lsi_file *file, size_t max_bytes, char **data, size_t *len,
                          ls_error *err)
{
    uint64_t size = 0;
    size_t room, have = 0;
    ls_status st = lsi_file_size(file, &size, err);

    if (st != LS_OK) {
        return st;
    }
    if (size > max_bytes) {
        return too_large(file->path, max_bytes, err);
    }
    room = size > 0 ? (size_t)size : LSI_MIN(max_bytes, (size_t)FIRST_READ);
    *data = lsi_alloc_aligned(room + 1, 64); // one more byte shows whether it grew
    if (*data == NULL) {
        return lsi_fail_memory(err, file->path, room + 1);
    }
    for (;;) {
        size_t got = 0;
        char *grown;

        st = lsi_file_read_at(file, have, *data + have, room + 1 - have, &got, err);
        if (st != LS_OK) {
            return st;
        }
        have += got;
        if (have <= room) {
            break;
        }
        if (room >= max_bytes) {
            return too_large(file->path, max_bytes, err);
        }
        room = room > max_bytes / 2 ? max_bytes : room * 2;
        grown = lsi_realloc(*data, have, room + 1, 1);
        if (grown == NULL) {
            return lsi_fail_memory(err, file->path, room + 1);
        }
        *data = grown;
    }
    (*data)[have] = '\0';
    *len = have;
    return LS_OK;
}

ls_status lsi_file_read(const char *path, size_t max_bytes, void **data, size_t *len,
                        ls_error *err)
{
    lsi_file *file = NULL;
    char *bytes = NULL;
    size_t n = 0;
    ls_status st = lsi_file_open(path, LSI_FILE_READ, &file, err);

    if (st != LS_OK) {
        return st;
    }
    LSI_ASSERT(file != NULL);
    st = read_all(file, LSI_MIN(max_bytes, SIZE_MAX / 4), &bytes, &n, err);
    lsi_file_close(file);
    if (st == LS_OK) {
        *data = bytes;
        *len = n;
    } else {
        lsi_free(bytes);
    }
    return st;
}

/* The folder of `path` to the disk, so that the new name survives a crash. */
static ls_status sync_folder(char *path, ls_error *err)
{
    char *slash = strrchr(path, '/');
    const char *folder = slash == path ? "/" : path;
    ls_status st = LS_OK;
    int fd;

    if (slash == NULL) {
        folder = ".";
    } else {
        *slash = '\0';
    }
    fd = open_fd(folder, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || sync_fd(fd) != 0) {
        st = lsi_fail_errno(err, errno, "cannot bring the folder %s to the disk", folder);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return st;
}

/* A number that no other process can predict; if the system has none, a different one. */
static uint64_t unguessable(void)
{
    static atomic_uint serial; // two threads that write the same path use different names
    const int fd = open_fd("/dev/urandom", O_RDONLY);
    uint64_t x = 0;

    if (fd < 0 || read(fd, &x, sizeof x) != (ssize_t)sizeof x) {
        x = (uint64_t)getpid() << 32 | atomic_fetch_add(&serial, 1);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return x;
}

/* Creates a file beside `path` and writes its name to `temp`. A file or link that exists
 * already is never opened. */
static ls_status open_beside(const char *path, char *temp, size_t room, lsi_file **out,
                             ls_error *err)
{
    ls_status st = LS_ALREADY_EXISTS;

    for (int i = 0; i < MOST_NAMES && st == LS_ALREADY_EXISTS; i++) {
        (void)snprintf(temp, room, "%s.%016" PRIx64 ".tmp", path, unguessable());
        st = lsi_file_open(temp, LSI_FILE_CREATE, out, err);
    }
    return st;
}

ls_status lsi_file_write_atomic(const char *path, const void *data, size_t len,
                                ls_error *err)
{
    const size_t room = strlen(path) + 48;
    char *temp = lsi_alloc(room, 1);
    lsi_file *file = NULL;
    ls_status st;

    if (temp == NULL) {
        return lsi_fail_memory(err, "a temporary name", room);
    }
    st = open_beside(path, temp, room, &file, err);
    if (st != LS_OK) {
        goto out;
    }
    LSI_ASSERT(file != NULL);
    st = lsi_file_write(file, data, len, err);
    if (st == LS_OK) {
        st = lsi_file_sync(file, err);
    }
    lsi_file_close(file);
    if (st == LS_OK && rename(temp, path) != 0) {
        st = lsi_fail_errno(err, errno, "cannot rename %s to %s", temp, path);
    }
    if (st != LS_OK) {
        (void)unlink(temp); // the first error counts
        goto out;
    }
    (void)snprintf(temp, room, "%s", path);
    st = sync_folder(temp, err);
out:
    lsi_free(temp);
    return st;
}
