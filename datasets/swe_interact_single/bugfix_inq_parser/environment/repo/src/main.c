#include "ini.h"

#include <stdio.h>
#include <string.h>

static int usage(void)
{
    fputs("usage: inq get FILE SECTION KEY\n       inq dump FILE\n", stderr);
    return 2;
}

static int get(const struct ini *ini, const char *section, const char *key)
{
    const char *value = ini_get(ini, section, key);
    if (!value) {
        fprintf(stderr, "inq: no such key: [%s] %s\n", section, key);
        return 1;
    }
    puts(value);
    return 0;
}

static int dump(const struct ini *ini)
{
    const struct entry *entry;
    for (entry = ini->first; entry; entry = entry->next)
        printf("%s.%s=%s\n", entry->section, entry->key, entry->value);
    return 0;
}

int main(int argc, char **argv)
{
    char error[1024];
    struct ini *ini;
    int status;
    int getting = argc == 5 && !strcmp(argv[1], "get");
    int dumping = argc == 3 && !strcmp(argv[1], "dump");
    if (!getting && !dumping)
        return usage();
    ini = ini_load(argv[2], error, sizeof error);
    if (!ini) {
        fprintf(stderr, "%s\n", error);
        return 2;
    }
    status = getting ? get(ini, argv[3], argv[4]) : dump(ini);
    ini_free(ini);
    return status;
}
