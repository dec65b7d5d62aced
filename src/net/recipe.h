/* recipe.h: defaults and limits of a latent_recipe. */
#ifndef LT_NET_RECIPE_H
#define LT_NET_RECIPE_H

#include "base/status.h"

void lt_recipe_defaults(latent_recipe *recipe);
/* Whether every field can be used; the sentence names the first that cannot. */
latent_status lt_recipe_check(latent_context *ctx, const latent_recipe *recipe);

#endif
