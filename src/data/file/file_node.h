/*
 * Datasets of one file. A format says how one record is read from the stream; opening,
 * saving, filling rows and the end are the same for all formats.
 */
#ifndef LSI_FILE_NODE_H
#define LSI_FILE_NODE_H
#include "data/data.h"
#include "data/file/stream.h"

typedef struct lsi_file_reader lsi_file_reader;

enum { LSI_FILE_RECORDS_AT_ONCE = 64 }; /* records that a format reads at once */

typedef struct lsi_file_format {
    lsi_dataset_ops node; /* its kind is the name that sharding knows it by */

    /* Optional: called after the stream was opened, to read a header or check sizes. A
     * failure with *again set is repeated by every call; after another one the next call
     * reads on. */
    ls_status (*begin)(lsi_file_reader *r, bool *again, ls_error *err);

    /*
     * Formats of strings: the next record, in the stream's buffer; the caller passes over
     * it and over `tail` bytes after it. LS_OUT_OF_RANGE: the end. After another failure
     * the file has ended.
     */
    ls_status (*record)(lsi_file_reader *r, ls_string *out, size_t *tail, ls_error *err);

    /*
     * Optional, faster: returns up to `most` records (at most LSI_FILE_RECORDS_AT_ONCE)
     * that are completely in the buffer and valid, and passes over them. They stay in the
     * buffer, or are copied to `pool` unless it is NULL. 0: the caller uses record(), which
     * reads more or fails.
     */
    size_t (*records)(lsi_file_reader *r, size_t most, lsi_string_pool *pool,
                      ls_string *out);

    /* Other formats: the next element. After LS_DATA_LOSS the file has ended. */
    ls_status (*element)(lsi_file_reader *r, ls_value **out, ls_error *err);

    /* Optional: passes over one record. */
    ls_status (*pass)(lsi_file_reader *r, ls_error *err);

    /* A format's reader struct may have more members after lsi_file_reader, zeroed. */
    size_t reader_size; /* 0: that of lsi_file_reader */
    void (*end)(lsi_file_reader *r);
} lsi_file_format;

/* The node of a format; its own members follow. */
typedef struct lsi_file_node {
    ls_dataset base;
    char *path;
    lsi_compression compression;
    size_t piece;
} lsi_file_node;

struct lsi_file_reader {
    lsi_iterator base;
    const lsi_file_format *format;
    const lsi_file_node *node;
    lsi_stream *stream; /* NULL: not open */
    bool begun;         /* the beginning of the file was read */
    bool over;          /* the file has ended */
};

/* A node of `size` bytes over one file; `spec` is retained. NULL: out of memory. */
ls_dataset *lsi_file_node_new(const lsi_file_format *format, size_t size, ls_string path,
                              lsi_compression compression, size_t piece, ls_spec *spec);

/* The entries of lsi_dataset_ops that all formats have. */
ls_status lsi_file_iterate(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                           ls_error *err);
void lsi_file_destroy(ls_dataset *d);

/* One-file readers by name: "tfrecord", "textline", "fixed", "csv". */
ls_dataset *lsi_tfrecord_node(ls_string path, lsi_compression compression, size_t piece,
                              ls_spec *spec);
ls_dataset *lsi_textline_node(ls_string path, lsi_compression compression, size_t piece,
                              ls_spec *spec);
ls_dataset *lsi_fixed_node(ls_string path, lsi_compression compression, size_t piece,
                           ls_spec *spec, const size_t sizes[3]);

/* The columns of CSV files, refcounted: the nodes of all files share it. */
typedef struct lsi_csv_layout lsi_csv_layout;
ls_status lsi_csv_layout_create(const ls_csv_column *columns, size_t n,
                                const ls_csv_options *opts, lsi_csv_layout **out,
                                ls_error *err);
lsi_csv_layout *lsi_csv_layout_retain(lsi_csv_layout *layout);
void lsi_csv_layout_release(lsi_csv_layout *layout); /* NULL is allowed */
ls_status lsi_csv_layout_spec(const lsi_csv_layout *layout, ls_spec **out, ls_error *err);
ls_dataset *lsi_csv_node(ls_string path, lsi_compression compression, size_t piece,
                         ls_spec *spec, lsi_csv_layout *layout);
#endif
