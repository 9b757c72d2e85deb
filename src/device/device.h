/* Logical devices: where memory lives and kernels run. */
#ifndef LSI_DEVICE_H
#define LSI_DEVICE_H
#include "base/base.h"
#include "device/input_threads.h"
#include "device/memory_provider.h"
#include "lockstep/runtime.h"
#include "os/team.h"

/* Instruction sets kernels are built for, in the order of preference. */
typedef enum lsi_isa {
    LSI_ISA_REF = -1,
    LSI_ISA_BASELINE = 0,
    LSI_ISA_AVX2,
    LSI_ISA_AVX512,
    LSI_ISA_COUNT
} lsi_isa;

const char *lsi_isa_name(lsi_isa isa); /* "baseline", "avx2", "avx512"; "ref" */
bool lsi_isa_from_name(const char *name, lsi_isa *out);
lsi_isa lsi_isa_best(void); /* of this CPU */

struct lsi_pool; /* device/pool.h: buffers reused step after step */

/* The most bytes of elements that the struct of a tensor has room for. */
enum { LSI_INLINE_BYTES = 64 };

struct ls_device {
    ls_runtime *runtime; /* borrowed: devices live inside their runtime */
    int index;
    char name[128]; /* canonical */
    lsi_team *team;
    struct lsi_pool *pool;
    size_t inline_bytes; /* tensors up to this size hold their elements in the struct:
                            LSI_INLINE_BYTES, or 0 where all elements are the pool's */
    lsi_isa isa;
    bool dnnl; /* the oneDNN module may be used */
    int cores;
    int core; /* a thread that works for it is pinned to; -1: not pinned */
};

/*
 * Memory of the device, aligned to 64 bytes, not zeroed; freed memory is kept and handed
 * out again in last-in-first-out order, so that a steady step gets the same addresses
 * again and nothing from the system. NULL: out of memory. Any thread.
 */
void *lsi_device_alloc(ls_device *dev, size_t bytes);
void lsi_device_free(ls_device *dev, void *ptr);

/* Called when a context opens, ends a step, closes: the pool counts them. */
void lsi_device_enter(ls_device *dev);
void lsi_device_step(ls_device *dev);
void lsi_device_leave(ls_device *dev);

/* Keeps the calling thread on the device's first core, if threads are to be pinned. */
void lsi_device_settle(const ls_device *dev);

/* Copies between host and device memory. */
void lsi_device_copy(ls_device *dev, void *to, const void *from, size_t bytes);

/*
 * Where other processes find these bytes, which are in memory of the device; false: they
 * do not, it is memory of this process only.
 */
bool lsi_device_locate(const ls_device *dev, const void *ptr, size_t bytes,
                       lsi_memory_location *out);

/* How often the pool of `dev` took memory from its provider, and the bytes it holds. */
void lsi_device_pool_stats(ls_device *dev, uint64_t *system_allocs, size_t *bytes_held);

/* The default runtime, made at first use; NULL: out of memory. Never released. */
ls_runtime *lsi_runtime_default(void);

/*
 * What the library itself decides on a runtime; zero means "as for everyone". Borrowed
 * for the call.
 */
typedef struct lsi_runtime_setup {
    const char *job; /* of the task that the runtime is; NULL: "localhost" */
    int task;        /* its index in the job */

    /*
     * NULL: all memory is the system's. Otherwise called once per device, in their order,
     * for what its memory comes from; *out is the device's and destroyed with it.
     */
    ls_status (*memory_of)(void *user, int device, lsi_memory_provider *out,
                           ls_error *err);
    void *user;
} lsi_runtime_setup;

/*
 * ls_runtime_create() with a setup (NULL: none). LS_INVALID_ARGUMENT, also: the job's
 * name cannot be part of a device's name.
 */
ls_status lsi_runtime_create_with(const ls_runtime_options *opts,
                                  const lsi_runtime_setup *setup, ls_runtime **out,
                                  ls_error *err);

/*
 * Its task, "/job:worker/replica:0/task:1": how the names of its devices begin, and what
 * is taken for the missing parts of other names.
 */
const char *lsi_runtime_task(const ls_runtime *rt);

/* The threads of its input. */
lsi_input_threads *lsi_runtime_input_threads(const ls_runtime *rt);

/* The seed of the random numbers of its contexts. */
uint64_t lsi_runtime_seed(const ls_runtime *rt);

/*
 * Parses any of TensorFlow's spellings into canonical form, missing parts from `dflt`
 * (such a name, or NULL), then localhost, replica 0, task 0, CPU:0. spec: canonicalize().
 */
ls_status lsi_device_canonical(const char *name, const char *dflt, char *out, size_t size,
                               ls_error *err);

/* "/job:worker/replica:0/task:1". */
ls_status lsi_task_name(const char *job, int task, char *out, size_t size, ls_error *err);
#endif
