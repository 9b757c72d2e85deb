/* The devices that a strategy is created for. */
#ifndef LSI_DEVICE_LIST_H
#define LSI_DEVICE_LIST_H
#include "replica/strategy.h"

/*
 * Devices by name, separated by commas; NULL or "": all of the runtime, or the first
 * `count` if that is not 0. The caller frees the list by lsi_free().
 */
ls_status lsi_devices_parse(ls_runtime *rt, const char *names, int count,
                            ls_device ***out, int *n, ls_error *err);

#endif
