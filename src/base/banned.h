/* Functions that are easy to get wrong: using one does not compile. */
#ifndef LSI_BANNED_H
#define LSI_BANNED_H
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LSI_BANNED(f) lsi_##f##_is_banned_see_src_base_banned_h
#undef strcpy
#define strcpy(a, b) LSI_BANNED(strcpy)
#undef strcat
#define strcat(a, b) LSI_BANNED(strcat)
#undef strncpy
#define strncpy(a, b, n) LSI_BANNED(strncpy)
#undef strncat
#define strncat(a, b, n) LSI_BANNED(strncat)
#undef sprintf
#define sprintf LSI_BANNED(sprintf)
#undef vsprintf
#define vsprintf LSI_BANNED(vsprintf)
#undef strtok
#define strtok(a, b) LSI_BANNED(strtok)
#undef localtime
#define localtime(t) LSI_BANNED(localtime)
#undef gmtime
#define gmtime(t) LSI_BANNED(gmtime)
#undef rand
#define rand() LSI_BANNED(rand)
#undef exit
#define exit(c) LSI_BANNED(exit)
#undef atoi
#define atoi(s) LSI_BANNED(atoi)
#endif
