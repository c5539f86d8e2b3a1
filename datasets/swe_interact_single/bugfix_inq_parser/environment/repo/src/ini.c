#include "ini.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copy a string; running out of memory ends the program. */
static char *copy(const char *text)
{
    char *result = malloc(strlen(text) + 1);
    if (!result)
        abort();
    return strcpy(result, text);
}

/* Cut blanks off both ends, in place. */
static char *trim(char *text)
{
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

static void add(struct ini *ini, const char *section, const char *key, const char *value)
{
    struct entry *entry = malloc(sizeof *entry);
    if (!entry)
        abort();
    entry->section = copy(section);
    entry->key = copy(key);
    entry->value = copy(value);
    entry->next = NULL;
    if (ini->last)
        ini->last->next = entry;
    else
        ini->first = entry;
    ini->last = entry;
}

/* Cut a comment off. */
static void uncomment(char *line)
{
    line[strcspn(line, "#;")] = '\0';
}

/* Take the quotes off a value, in place. */
static char *unquote(char *value)
{
    size_t length = strlen(value);
    if (length >= 2 && value[0] == '"' && value[length - 1] == '"') {
        value[length - 1] = '\0';
        value++;
    }
    return value;
}

/* Read one line; return a message if it makes no sense. */
static const char *read_line(struct ini *ini, char **section, char *line)
{
    char *equals, *key;
    uncomment(line);
    line = trim(line);
    if (!*line)
        return NULL;
    if (*line == '[') {
        char *end = strchr(line, ']');
        if (!end || end[1])
            return "bad section";
        *end = '\0';
        free(*section);
        *section = copy(trim(line + 1));
        return NULL;
    }
    equals = strrchr(line, '=');
    if (!equals)
        return "expected key = value";
    *equals = '\0';
    key = trim(line);
    if (!*key)
        return "missing key";
    add(ini, *section, key, unquote(trim(equals + 1)));
    return NULL;
}

struct ini *ini_load(const char *path, char *error, size_t size)
{
    char line[256];
    int number = 0;
    const char *message = NULL;
    char *section = copy("");
    struct ini *ini = calloc(1, sizeof *ini);
    FILE *file = fopen(path, "r");
    if (!ini)
        abort();
    if (!file) {
        snprintf(error, size, "%s: %s", path, strerror(errno));
        free(section);
        ini_free(ini);
        return NULL;
    }
    while (!message && fgets(line, sizeof line, file)) {
        line[strlen(line) - 1] = '\0';
        if (!*line)
            continue;
        number++;
        message = read_line(ini, &section, line);
    }
    fclose(file);
    free(section);
    if (message) {
        snprintf(error, size, "%s:%d: %s", path, number, message);
        ini_free(ini);
        return NULL;
    }
    return ini;
}

const char *ini_get(const struct ini *ini, const char *section, const char *key)
{
    const struct entry *entry;
    for (entry = ini->first; entry; entry = entry->next)
        if (!strcmp(entry->section, section) && !strcmp(entry->key, key))
            return entry->value;
    return NULL;
}

void ini_free(struct ini *ini)
{
    struct entry *entry = ini->first;
    while (entry) {
        struct entry *next = entry->next;
        free(entry->section);
        free(entry->key);
        free(entry->value);
        free(entry);
        entry = next;
    }
    free(ini);
}
