/* Writes the files of a case into a temporary folder. */
#include "input_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* CRC-32C bit by bit, independent of the library's own. */
static uint32_t masked_crc(const unsigned char *p, size_t n)
{
    uint32_t crc = 0xffffffffU;

    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (0x82f63b78U & (0U - (crc & 1U)));
        }
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

static void put_little(unsigned char *to, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        to[i] = (unsigned char)(x >> 8 * i);
    }
}

static bool write_record(FILE *f, const json_t *record)
{
    size_t n = 0;
    char *bytes = input_bytes(record, &n);
    unsigned char head[12], tail[4];
    bool written;

    if (bytes == NULL) {
        return false;
    }
    put_little(head, n, 8);
    put_little(head + 8, masked_crc(head, 8), 4);
    put_little(tail, masked_crc((const unsigned char *)bytes, n), 4);
    written = fwrite(head, 1, sizeof head, f) == sizeof head &&
              fwrite(bytes, 1, n, f) == n &&
              fwrite(tail, 1, sizeof tail, f) == sizeof tail;
    free(bytes);
    return written;
}

static bool write_content(FILE *f, const json_t *content)
{
    const json_t *records = json_object_get(content, "tfrecord");
    const json_t *text = json_object_get(content, "text");
    bool written = true;
    size_t n = 0;
    char *bytes;

    if (records != NULL) {
        for (size_t i = 0; written && i < json_array_size(records); i++) {
            written = write_record(f, json_array_get(records, i));
        }
        return written;
    }
    bytes = input_bytes(text == NULL ? content : text, &n);
    written = bytes != NULL && fwrite(bytes, 1, n, f) == n;
    free(bytes);
    return written;
}

static bool write_file(const char *folder, const char *name, const json_t *content)
{
    char path[4096];
    FILE *f;
    bool written;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "wb");
    if (f == NULL) {
        return false;
    }
    written = write_content(f, content);
    return fclose(f) == 0 && written;
}

bool input_files_open(const json_t *files, char *folder, size_t size, char *note,
                      size_t note_size)
{
    const char *name;
    json_t *content;

    (void)snprintf(folder, size, "/tmp/oracle-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        (void)snprintf(note, note_size, "no folder could be made: %s", folder);
        return false;
    }
    // Reading a key does not change the object, whatever the iterator's type says.
    json_object_foreach((json_t *)(uintptr_t)files, name, content)
    {
        if (!write_file(folder, name, content)) {
            (void)snprintf(note, note_size, "%s/%s could not be written", folder, name);
            input_files_close(files, folder);
            return false;
        }
    }
    return true;
}

void input_files_close(const json_t *files, const char *folder)
{
    const char *name;
    json_t *content;

    json_object_foreach((json_t *)(uintptr_t)files, name, content)
    {
        char path[4096];

        (void)snprintf(path, sizeof path, "%s/%s", folder, name);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}
