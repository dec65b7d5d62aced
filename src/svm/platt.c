/* platt.c: probabilities out of decision values.
 *
 * Platt's sigmoid P(y=+1|f) = 1/(1 + exp(a f + b)) is fitted by maximum likelihood with his softened targets,
 * by Newton's method with backtracking in the form of Lin, Lin and Weng (2007), which neither overflows nor
 * cancels: with z = a f + b the loss of one row with target t is t z + log(1 + exp(-z)).
 *
 * The probabilities of pairs are coupled as in Wu, Lin and Weng (2004), second approach: p minimizes
 * sum over i<j of (r[j][i] p[i] - r[i][j] p[j])^2 under sum(p) = 1, found by their fixed-point iteration.
 */
#include "svm/svm.h"

#include <math.h>

enum { NEWTON_STEPS = 100 };

/* log(1 + exp(-z)) + t z, without overflow for either sign of z. */
static double loss_of(double t, double z) {
    return z >= 0 ? t * z + log1p(exp(-z)) : (t - 1) * z + log1p(exp(z));
}

double lt_platt(double decision, double a, double b) {
    double z = a * decision + b;
    return z >= 0 ? exp(-z) / (1 + exp(-z)) : 1 / (1 + exp(z));
}

typedef struct fit {
    size_t n;
    const double *decision, *y;
    double high, low; /* softened targets */
} fit;

static double total_loss(const fit *m, double a, double b) {
    double sum = 0;
    for (size_t i = 0; i < m->n; i++) {
        sum += loss_of(m->y[i] > 0 ? m->high : m->low, a * m->decision[i] + b);
    }
    return sum;
}

/* Gradient g and Hessian h = (aa, bb, ab), with a little on the diagonal so that it can be inverted. */
static void derivatives(const fit *m, double a, double b, double g[2], double h[3]) {
    g[0] = g[1] = h[2] = 0;
    h[0] = h[1] = 1e-12;
    for (size_t i = 0; i < m->n; i++) {
        double f = m->decision[i], p = lt_platt(f, a, b), t = m->y[i] > 0 ? m->high : m->low;
        double curvature = p * (1 - p), slope = t - p;
        h[0] += f * f * curvature;
        h[1] += curvature;
        h[2] += f * curvature;
        g[0] += f * slope;
        g[1] += slope;
    }
}

void lt_platt_fit(size_t n, const double *decision, const double *y, double *a, double *b) {
    fit m = {n, decision, y, 0, 0};
    double positive = 0, negative = 0, loss, g[2], h[3];
    for (size_t i = 0; i < n; i++) {
        *(y[i] > 0 ? &positive : &negative) += 1;
    }
    m.high = (positive + 1) / (positive + 2);
    m.low = 1 / (negative + 2);
    *a = 0;
    *b = log((negative + 1) / (positive + 1));
    loss = total_loss(&m, *a, *b);
    for (int step = 0; step < NEWTON_STEPS; step++) {
        derivatives(&m, *a, *b, g, h);
        if (fabs(g[0]) < 1e-5 && fabs(g[1]) < 1e-5) {
            return;
        }
        double determinant = h[0] * h[1] - h[2] * h[2];
        double da = -(h[1] * g[0] - h[2] * g[1]) / determinant;
        double db = -(h[0] * g[1] - h[2] * g[0]) / determinant;
        double slope = g[0] * da + g[1] * db, size = 1;
        for (; size >= 1e-10; size /= 2) {
            double next = total_loss(&m, *a + size * da, *b + size * db);
            if (next < loss + 1e-4 * size * slope) {
                *a += size * da;
                *b += size * db;
                loss = next;
                break;
            }
        }
        if (size < 1e-10) {
            return; /* no step makes it better: as good as the arithmetic allows */
        }
    }
}

void lt_platt_couple(int k, const double *r, double *q, double *p) {
    if (k == 2) {
        p[0] = r[1];
        p[1] = 1 - r[1];
        return;
    }
    for (int t = 0; t < k; t++) {
        p[t] = 1.0 / k;
        q[t * k + t] = 0;
        for (int j = 0; j < k; j++) {
            if (j != t) {
                q[t * k + t] += r[j * k + t] * r[j * k + t];
                q[t * k + j] = -r[j * k + t] * r[t * k + j];
            }
        }
    }
    int rounds = k > 100 ? k : 100;
    for (int round = 0; round < rounds; round++) {
        double pqp = 0, worst = 0;
        for (int t = 0; t < k; t++) {
            double qp = 0;
            for (int j = 0; j < k; j++) {
                qp += q[t * k + j] * p[j];
            }
            pqp += p[t] * qp;
        }
        for (int t = 0; t < k; t++) {
            double qp = 0;
            for (int j = 0; j < k; j++) {
                qp += q[t * k + j] * p[j];
            }
            worst = fabs(qp - pqp) > worst ? fabs(qp - pqp) : worst;
        }
        if (worst < 0.005 / k) {
            break;
        }
        /* Each p in turn to where its own condition holds, the sum back to 1 at once. */
        for (int t = 0; t < k; t++) {
            double qp = 0, sum = 0, value = 0;
            for (int j = 0; j < k; j++) {
                qp += q[t * k + j] * p[j];
            }
            p[t] += (pqp - qp) / q[t * k + t];
            for (int j = 0; j < k; j++) {
                sum += p[j];
            }
            for (int j = 0; j < k; j++) {
                p[j] /= sum;
            }
            for (int i = 0; i < k; i++) {
                for (int j = 0; j < k; j++) {
                    value += p[i] * q[i * k + j] * p[j];
                }
            }
            pqp = value;
        }
    }
}
