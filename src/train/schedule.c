/* schedule.c: learning rates, as PyTorch's schedulers give them.
 *
 * With s the step from 0, T all steps of the training and
 *     anneal(a, b, q) = b + (a - b) * (1 + cos(pi*q)) / 2        from a at q = 0 to b at q = 1:
 *
 * constant   lr(s) = peak
 * cosine     lr(s) = anneal(peak, 0, s / T)                      CosineAnnealingLR(T_max=T, eta_min=0)
 * onecycle   first = peak / 25, last = first / 10000, up = 0.3*T - 1      OneCycleLR(peak, T) by default
 *            lr(s) = anneal(first, peak, s / up)                 while s <= up
 *                    anneal(peak, last, (s - up) / (T-1 - up))   after that
 *            Momentum is not cycled. `up` need not be whole, so the peak itself may lie between two steps;
 *            with T < 4 it is negative and the rate only falls, as in PyTorch.
 */
#include "train/schedule.h"

#include <math.h>

static double anneal(double from, double to, double part) {
    return to + (from - to) * (1 + cos(M_PI * part)) / 2;
}

double lt_schedule_lr(latent_schedule schedule, double peak, uint64_t step, uint64_t total) {
    double s = (double)step, steps = (double)total;
    if (schedule == LATENT_COSINE) {
        return anneal(peak, 0, s / steps);
    }
    if (schedule == LATENT_ONECYCLE) {
        double first = peak / 25, last = first / 1e4, up = 0.3 * steps - 1;
        return s <= up ? anneal(first, peak, s / up) : anneal(peak, last, (s - up) / (steps - 1 - up));
    }
    return peak;
}
