/*
 * FNV-1a, 64 bits: the one hash of the library, for tables, fingerprints and for telling
 * a damaged state from a whole one. It does not protect against an attacker.
 */
#ifndef LSI_HASH_H
#define LSI_HASH_H
#include <stddef.h>
#include <stdint.h>

#define LSI_HASH_INIT UINT64_C(0xcbf29ce484222325)

/* Adds one value to the hash. For bytes this is FNV-1a itself; a word is mixed as one. */
static inline uint64_t lsi_hash_word(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * UINT64_C(0x100000001b3);
}

/* Adds `size` bytes. Begin with LSI_HASH_INIT. */
static inline uint64_t lsi_hash(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < size; i++) {
        hash = lsi_hash_word(hash, p[i]);
    }
    return hash;
}
#endif
