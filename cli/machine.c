/* machine.c: what the program runs on and how it was called, for whoever wants to make a run again. */
#include "pipeline.h"

#include "format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The processor's name as the system has it; "" when it does not say. */
static void processor(char *out, size_t size) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[512];
    *out = 0;
    while (file && !*out && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (colon && strncmp(line, "model name", 10) == 0) {
            line[strcspn(line, "\n")] = 0;
            snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " "));
        }
    }
    if (file) {
        fclose(file);
    }
}

char *cli_machine(void) {
    struct utsname system;
    latent_backend_info backend;
    char name[256], gpu[256] = "";
    long cores = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    processor(name, sizeof name);
    for (int i = 0; latent_backend_get_info(i, &backend); i++) {
        if (strcmp(backend.name, "cuda") == 0 && backend.available) {
            snprintf(gpu, sizeof gpu, "; %s", backend.detail);
        }
    }
    int known = uname(&system) == 0;
    return cli_print("%s%s%ld core%s, %s memory, %s %s%s", name, *name ? ", " : "", cores,
                     cores == 1 ? "" : "s", cli_bytes((uint64_t)pages * (uint64_t)page).s,
                     known ? system.sysname : "unknown system", known ? system.release : "", gpu);
}

/* Appends a word, quoted where a shell would take it apart. */
static void append_word(FILE *out, const char *word) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./=%+:,@";
    if (*word && strspn(word, plain) == strlen(word)) {
        fprintf(out, " %s", word);
        return;
    }
    fputs(" '", out);
    for (; *word; word++) {
        fputs(*word == '\'' ? "'\\''" : (char[2]){*word, 0}, out);
    }
    fputc('\'', out);
}

char *cli_command_line(const cli_arguments *arguments, const char *run, const char *data) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    cli_need_memory(out);
    fprintf(out, "latent %s", arguments->command->name);
    for (int i = 0; i < arguments->operand_count; i++) {
        append_word(out, arguments->operands[i]);
    }
    for (int i = 0; i < arguments->count; i++) {
        const cli_value *value = &arguments->values[i];
        const char *name = value->option->name;
        if (!value->given || strcmp(name, "run") == 0 || strcmp(name, "data") == 0 ||
            strcmp(name, "json") == 0 || strcmp(name, "quiet") == 0) {
            continue;
        }
        fprintf(out, " --%s", name);
        if (value->option->type != CLI_FLAG) {
            append_word(out, value->text);
        }
    }
    if (data) {
        fputs(" --data", out);
        append_word(out, data);
    } else if (!cli_flag(arguments, "synthetic")) {
        fputs(" --synthetic", out); /* elsewhere there may be a set at hand */
    }
    fputs(" --run", out);
    append_word(out, run);
    cli_need_memory(fclose(out) == 0 ? text : NULL);
    return text;
}
