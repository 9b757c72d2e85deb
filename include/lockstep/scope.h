/*
 * lockstep/scope.h - what holds on the calling thread: the strategy in force, names,
 * devices and makers of variables.
 *
 * Every thread begins in default mode: no strategy is current and it is "in" the one
 * replica of the default strategy. Entering a strategy's scope, running its functions and
 * merging change that for the time being. Scopes are left in the reverse order.
 *
 * Threads: everything here is about the calling thread.
 */
#ifndef LS_SCOPE_H
#define LS_SCOPE_H

#include "lockstep/variable.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The strategy in force; the default one if none is. Borrowed; never NULL. */
LS_API ls_strategy *ls_current_strategy(void);

/* True if ls_current_strategy() is not the default one. */
LS_API bool ls_has_strategy(void);

/* True inside a scope, a merge function and an update function. */
LS_API bool ls_in_cross_replica_context(void);

/*
 * The context of the replica that runs on this thread; NULL in cross-replica context. In
 * default mode the thread's own context, which lives as long as the thread.
 */
LS_API ls_context *ls_replica_context(void);

/* The strategy if this is a cross-replica context, else NULL. */
LS_API ls_strategy *ls_cross_replica_context(void);

/*
 * Variables made from here to ls_scope_exit() are the strategy's. May be entered again
 * inside itself. LS_FAILED_PRECONDITION: another strategy is current (they do not mix),
 * or this is a replica function (use ls_merge_call).
 */
LS_API LS_MUST_USE ls_status ls_scope_enter(ls_strategy *s, ls_error *err);

/* Leaves the scope entered last. A wrong nesting is logged and changes nothing. */
LS_API void ls_scope_exit(ls_strategy *s);

/*
 * The same, with the failure: LS_FAILED_PRECONDITION names what was opened inside and
 * not closed (a device, a creator or a name scope); close it and try again.
 */
LS_API LS_MUST_USE ls_status ls_scope_try_exit(ls_strategy *s, ls_error *err);

/*
 * Makes `s` (NULL: none) the strategy of this thread until the next such call.
 * LS_FAILED_PRECONDITION: a scope is open.
 */
LS_API LS_MUST_USE ls_status ls_set_strategy(ls_strategy *s, ls_error *err);

/* Variables made inside are named "name/...". */
LS_API LS_MUST_USE ls_status ls_name_scope_enter(const char *name, ls_error *err);
LS_API LS_MUST_USE ls_status ls_name_scope_exit(ls_error *err);

/* What has no other place is put on `device`. */
LS_API LS_MUST_USE ls_status ls_device_scope_enter(ls_device *device, ls_error *err);
LS_API LS_MUST_USE ls_status ls_device_scope_exit(ls_error *err);

/*
 * Variables made inside go through `fn` first, the innermost before the others; it makes
 * the variable by ls_creator_call(), with other arguments if it likes. A scope inside of
 * a strategy's is called once for a variable. One that was open before the strategy came
 * into force is called for each copy ("w", "w/replica_1", ...), with the copy's device in
 * the options: what it makes is a plain variable, of the first copy's dtype and shape.
 */
typedef struct ls_creator_next ls_creator_next;
typedef ls_status (*ls_creator_fn)(const ls_creator_next *next, const ls_tensor *value,
                                   const ls_variable_options *opts, void *user,
                                   ls_variable **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_creator_call(const ls_creator_next *next,
                                             const ls_tensor *value,
                                             const ls_variable_options *opts,
                                             ls_variable **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_creator_scope_enter(ls_creator_fn fn, void *user,
                                                    ls_error *err);
LS_API LS_MUST_USE ls_status ls_creator_scope_exit(ls_error *err);

/* Variables made inside go to the devices of `v`, a variable of `s`. */
LS_API LS_MUST_USE ls_status ls_colocate_enter(ls_strategy *s, ls_variable *v,
                                               ls_error *err);
LS_API LS_MUST_USE ls_status ls_colocate_exit(ls_strategy *s, ls_error *err);

/*
 * Inside, ls_variable_as_tensor() of an ON_READ variable in a replica aggregates over the
 * replicas, and ls_read() of one is LS_UNIMPLEMENTED. Does not nest.
 */
LS_API LS_MUST_USE ls_status ls_sync_on_read_enter(ls_error *err);
LS_API LS_MUST_USE ls_status ls_sync_on_read_exit(ls_error *err);

#ifdef __cplusplus
}
#endif
#endif /* LS_SCOPE_H */
