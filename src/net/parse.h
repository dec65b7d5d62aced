/* parse.h: net files to nets. */
#ifndef LT_NET_PARSE_H
#define LT_NET_PARSE_H

#include "net/net.h"

/* Splits [text, text+length) into ops and the recipe and places the parameters. `origin` names it. */
latent_status lt_net_read(latent_context *ctx, const char *text, size_t length, const char *origin,
                          latent_net *net);

#endif
