/* CRC-32C (Castagnoli) of bytes, and of several records at once. */
#ifndef LSI_CRC32C_H
#define LSI_CRC32C_H
#include "base/base.h"

#include "lockstep/tensor.h"

uint32_t lsi_crc32c(const void *data, size_t len);
uint32_t lsi_crc32c_masked(const void *data, size_t len); /* as TFRecord stores it */

/* The masked sums of `n` records, which is faster than one by one; if `n` is a multiple
 * of LSI_CRC_GROUP, all of them are summed in groups. */
enum { LSI_CRC_GROUP = 12 };
void lsi_crc32c_records(const ls_string *records, size_t n, uint32_t *sums);
#endif
