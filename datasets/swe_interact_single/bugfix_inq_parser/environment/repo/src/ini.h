/* INI files, read into a list in their order. */
#ifndef INI_H
#define INI_H

#include <stddef.h>

struct entry {
    char *section;
    char *key;
    char *value;
    struct entry *next;
};

struct ini {
    struct entry *first;
    struct entry *last;
};

/* Read a file. Returns NULL and writes `FILE:LINE: message` to error if it cannot be read. */
struct ini *ini_load(const char *path, char *error, size_t size);

/* Return a value, or NULL. */
const char *ini_get(const struct ini *ini, const char *section, const char *key);

void ini_free(struct ini *ini);

#endif
