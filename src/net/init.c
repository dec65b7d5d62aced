/* init.c: the first weights.
 *
 * He initialization: normal with variance 2 / fan_in, fan_in = C*R*S. Each weight has its own count, so the
 * numbers depend on the seed and the weight's place alone. Two uniform numbers make one normal number by
 * Box and Muller's formula: r = sqrt(-2 ln u1), z = r cos(2 pi u2).
 */
#include "base/rng.h"
#include "net/net.h"

#include <math.h>
#include <string.h>

static double normal(uint64_t seed, uint64_t index) {
    const double two_pi = 6.283185307179586476925286766559;
    lt_random random = lt_philox(seed, LT_RNG_INIT, 0, index);
    return sqrt(-2.0 * log(lt_uniform(random.v[0]))) * cos(two_pi * lt_uniform(random.v[1]));
}

void lt_net_init(const latent_net *net, uint64_t seed, float *params) {
    memset(params, 0, net->param_count * sizeof *params);
    for (int i = 0; i < net->op_count; i++) {
        const lt_op *op = &net->ops[i];
        if (op->weight_count == 0) {
            continue;
        }
        double deviation = sqrt(2.0 * op->conv.K / (double)op->weight_count);
        for (size_t j = op->weight; j < op->weight + op->weight_count; j++) {
            params[j] = (float)(deviation * normal(seed, j));
        }
    }
}
