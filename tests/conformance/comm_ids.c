/*
 * Sums over ids: every rank gives the partial sums of several replicas. The bits are
 * those of one tree over all of them, however many each rank has.
 */
#include "comm_suite.h"

#include "collective/collective.h"
#include "reduce/reduction.h"
#include "tensor/tensor.h"

static const lsi_comm_site here = {"ids.c", 3};

enum { IDS_MOST = 7, PIECES = 3 };

static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16, LS_I8, LS_U64};

/* Lengths of the pieces: a few bytes; several blocks; several tasks. */
static const size_t lengths[][PIECES] = {{3, 0, 2}, {1500, 0, 77}, {90001, 1, 40000}};

/* Replica `id` gives this; the sum of floats depends on the order of additions. */
static void fill_values(void *data, ls_dtype dtype, int id, size_t count)
{
    uint64_t state = (uint64_t)id * 977 + 5;

    for (size_t i = 0; i < count; i++) {
        const float x = lst_random_f32(&state, -3, 3) * (id % 3 == 0 ? 64.0F : 1.0F);

        switch (dtype) {
        case LS_F32:
            ((float *)data)[i] = x;
            break;
        case LS_F64:
            ((double *)data)[i] = (double)x / 3;
            break;
        case LS_F16:
            ((uint16_t *)data)[i] = lsi_f32_to_f16(x);
            break;
        case LS_BF16:
            ((uint16_t *)data)[i] = lsi_f32_to_bf16(x);
            break;
        case LS_I8:
            ((int8_t *)data)[i] = (int8_t)x;
            break;
        default:
            ((uint64_t *)data)[i] = lst_random(&state);
            break;
        }
    }
}

/* What all ids give for one piece, and the sum of all of them in one step. */
struct piece {
    size_t count;
    unsigned char *given[IDS_MOST * LST_MOST_RANKS];
    unsigned char *want;
    unsigned char *held; // this rank's partial sums, or its buffer
    unsigned char *to;
};

static void make_piece(struct piece *p, const lst_rank *me, int ids,
                       const lsi_comm_reduction *sum, size_t count)
{
    const size_t bytes = count * ls_dtype_size(sum->dtype) + 8;
    const lsi_reduction part = lsi_reduction_of(sum->op, sum->dtype, 1);
    const int n = ids * me->size, first = ids * me->rank;
    const void *from[IDS_MOST * LST_MOST_RANKS];
    lsi_partial_sum parts[LSI_PARTIALS_MOST];
    int m;

    p->count = count;
    for (int id = 0; id < n; id++) {
        p->given[id] = malloc(bytes);
        fill_values(p->given[id], sum->dtype, id, count);
        from[id] = p->given[id];
    }
    p->want = malloc(bytes);
    p->to = malloc(bytes);
    memset(p->to, 0x5a, bytes);
    lsi_reduce_tree(sum->op, from, n, p->want, count, sum->dtype);
    m = lsi_partials_of(first, first + ids, parts);
    p->held = malloc((size_t)m * count * lsi_wide_size(sum->dtype) + 8);
    if (ids == 1) {
        memcpy(p->held, from[first], count * ls_dtype_size(sum->dtype));
        return;
    }
    for (int i = 0; i < m; i++) {
        parts[i].data = p->held + (size_t)i * count * lsi_wide_size(sum->dtype);
    }
    lsi_partials_add(&part, from + first, parts, m, count);
}

static void free_piece(struct piece *p, int n)
{
    for (int id = 0; id < n; id++) {
        free(p->given[id]);
    }
    free(p->want);
    free(p->held);
    free(p->to);
}

struct plan_of_sums {
    const size_t *lengths;
    bool in_place;
};

static void sum_one(lst_rank *me, lsi_comm_reduction *sum, const struct plan_of_sums *how)
{
    const bool in_place =
        how->in_place && lsi_wide_size(sum->dtype) == ls_dtype_size(sum->dtype);
    struct piece pieces[PIECES] = {{0}};
    lsi_comm_piece given[PIECES];

    for (int i = 0; i < PIECES; i++) {
        make_piece(&pieces[i], me, sum->ids, sum, how->lengths[i]);
        given[i] = (lsi_comm_piece){
            pieces[i].held, in_place ? pieces[i].held : pieces[i].to, pieces[i].count};
    }
    sum->pieces = given;
    sum->n = PIECES;
    LST_OK(lsi_comm_all_reduce_pieces(me->comm, sum, NULL, here, NULL));
    for (int i = 0; i < PIECES; i++) {
        LST_CHECK(memcmp(given[i].to, pieces[i].want,
                         given[i].count * ls_dtype_size(sum->dtype)) == 0);
        free_piece(&pieces[i], sum->ids * me->size);
    }
}

static void sum_ids(lst_rank *me)
{
    const struct plan_of_sums *how = me->arg;
    const bool few = how->lengths[0] > 10000; // long pieces: for the cut into tasks

    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        for (int op = LS_SUM; op <= LS_PROD; op++) {
            for (int ids = 1; ids <= IDS_MOST; ids++) {
                lsi_comm_reduction sum = {.op = (ls_reduce)op,
                                          .dtype = dtypes[d],
                                          .ids = ids,
                                          .tag = "sum of ids",
                                          .detail = 9};

                if (!few || (d < 3 && op == LS_MEAN && (ids == 4 || ids == 3))) {
                    sum_one(me, &sum, how);
                }
            }
        }
    }
}

/* Rank 1 gives other numbers than rank 0. */
struct difference {
    lsi_comm_reduction even, odd;
    ls_status code;
    const char *word;
};

static void ids_differ(lst_rank *me)
{
    const struct difference *d = me->arg;
    double x[8] = {0}, y[4] = {0};
    const lsi_comm_piece piece = {x, y, 2};
    lsi_comm_reduction sum = me->rank == 1 ? d->odd : d->even;
    ls_error err = LS_ERROR_INIT;

    sum.dtype = sum.dtype == LS_F32 ? LS_F32 : LS_F64;
    sum.pieces = &piece;
    sum.n = 1;
    LST_FAILS(lsi_comm_all_reduce_pieces(me->comm, &sum, NULL, here, &err), d->code, err,
              d->word);
    LST_CHECK(err.rank == 1);
}

static void ids_that_make_no_sense(lst_rank *me)
{
    static const int ids[] = {-1, 0x7fffffff};
    ls_error err = LS_ERROR_INIT;

    for (int i = 0; i < (me->size > 1 ? 2 : 1); i++) {
        const lsi_comm_reduction sum = {.dtype = LS_F32, .ids = ids[i]};

        LST_FAILS(lsi_comm_all_reduce_pieces(me->comm, &sum, NULL, here, &err),
                  LS_INVALID_ARGUMENT, err, "ids");
    }
}

void lst_comm_ids(const lst_comm_factory *f)
{
    static const struct difference differences[] = {
        {{.ids = 2}, {.ids = 3}, LS_INTERNAL, "ids mismatch"},
        {{.ids = 1}, {.ids = 2}, LS_INTERNAL, "ids mismatch"},
        {{.ids = 2, .tag = "a"}, {.ids = 2, .tag = "b"}, LS_INTERNAL, "operation"},
        {{.ids = 2, .tag = "a"},
         {.ids = 2, .tag = "a", .dtype = LS_F32},
         LS_INTERNAL,
         "dtype mismatch"},
        {{.detail = 1, .tag = "a"}, {.detail = 2, .tag = "a"}, LS_INTERNAL, "detail"},
    };

    for (int place = 0; place < 2; place++) {
        for (int i = 0; i < PIECES; i++) {
            struct plan_of_sums how = {lengths[i], place == 1};

            if (i < 2) {
                lst_run_sizes(f, sum_ids, &how);
            } else {
                lst_run_ranks(f, LSI_MIN(f->most, 3), 0, sum_ids, &how);
            }
        }
    }
    lst_run_sizes(f, ids_that_make_no_sense, NULL);
    for (size_t i = 0; f->most > 1 && i < sizeof differences / sizeof *differences; i++) {
        struct difference d = differences[i];

        lst_run_ranks(f, 3, 0, ids_differ, &d);
    }
}
