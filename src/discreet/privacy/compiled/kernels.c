/* Products of tables over codes, looked up, put on the grid and added up: what NumPy does, in one sweep.

   Every operation on a record is an operation of IEEE float64 in the order in which NumPy does it, so that a record
   has the same integers either way (docs/proofs/gate.md, lemma 6). Fused multiplication and reordered sums would break
   that: the flags in library.py switch them off, and a compiler that computes with more digits is refused here. */

#include <float.h>
#include <math.h>
#include <stdint.h>

#if !defined(FLT_EVAL_METHOD) || FLT_EVAL_METHOD != 0
#error "float64 arithmetic has to round every result"
#endif

/* Records at a time, so that what belongs to them stays in the cache; and numbers added up side by side. */
#define ROWS 128
#define LANES 8

struct layout {
  int64_t functions;          /* functions of single covariates */
  const int64_t *column;      /* the covariate of each */
  const double *const *table; /* its values, one for each code */
  int64_t features;
  const int64_t *member;      /* three functions of each feature, -1 for none; -2 - k for the k-th column of values */
  const double *size;         /* what each feature is multiplied by */
  const int64_t *factor;      /* which of the factors of a record goes with it */
  int64_t first;              /* whether a record's factor is multiplied in first, or last */
};

struct chunk {
  int64_t rows;
  const uint16_t *codes;      /* one covariate after the other */
  int64_t factors;
  const double *factor;       /* one after the other */
  const double *const *values;
};

struct grid {
  double radius;
  double scale;               /* steps in one unit */
  double edge;                /* steps in the radius */
  double safe;                /* a little less than the edge */
};

/* Products of one feature for a block of records. Columns of values are multiplied by a factor and nothing else. */
static void multiply(const struct layout *own, int64_t k, double taken[][ROWS], double given[][ROWS],
                     double factors[][ROWS], double *restrict out) {
  const int64_t *member = own->member + 3 * k;
  const double size = own->size[k], *factor = factors[own->factor[k]];
  if (member[0] < -1) {
    const double *lead = given[-2 - member[0]];
    for (int i = 0; i < ROWS; i++) out[i] = lead[i] * factor[i];
    return;
  }
  if (member[0] < 0) {
    for (int i = 0; i < ROWS; i++) out[i] = size * factor[i];
    return;
  }
  const double *lead = taken[member[0]];
  if (own->first)
    for (int i = 0; i < ROWS; i++) out[i] = lead[i] * factor[i] * size;
  else
    for (int i = 0; i < ROWS; i++) out[i] = lead[i] * size;
  for (int other = 1; other < 3 && member[other] >= 0; other++) {
    const double *next = taken[member[other]];
    for (int i = 0; i < ROWS; i++) out[i] *= next[i];
  }
  if (!own->first)
    for (int i = 0; i < ROWS; i++) out[i] *= factor[i];
}

/* Products to the nearest steps, and their squares on top of those of earlier features. Returns other than 0 where one
   lies outside of the cube; written so that NaN does. */
static int64_t round_off(const struct grid *grid, const double *restrict products, double *restrict steps,
                         double *restrict squares) {
  const double radius = grid->radius, scale = grid->scale;
  int64_t outside = 0;
  for (int i = 0; i < ROWS; i++) {
    outside |= (int64_t)!(fabs(products[i]) <= radius);
    steps[i] = rint(products[i] * scale);
    squares[i] += steps[i] * steps[i];
  }
  return outside;
}

/* What steps are multiplied by for their squares not to exceed the edge's; returns other than 0 if any do. */
static int64_t shrink_to(const struct grid *grid, const double *restrict squares, double *restrict shrink) {
  const double most = grid->edge * grid->edge, safe = grid->safe;
  int64_t over = 0;
  for (int i = 0; i < ROWS; i++) {
    over |= (int64_t)(squares[i] > most);
    shrink[i] = squares[i] > most ? safe / sqrt(squares[i]) : 1.0;
  }
  return over;
}

/* Integers of each record inside of a ball, as into_ball makes them: into ``steps`` (features lie so far ``apart``) or
   added to ``sums``, whichever is given. Returns 1, with nothing of use, where a number lies outside of the cube. */
int64_t into_ball(const struct layout *own, const struct chunk *chunk, const struct grid *grid, double *memory,
                  double *steps, int64_t apart, int64_t *sums) {
  double(*taken)[ROWS] = (double(*)[ROWS])memory;
  double(*kept)[ROWS] = taken + own->functions;
  double(*factors)[ROWS] = kept + own->features;
  double(*given)[ROWS] = factors + chunk->factors;
  double products[ROWS], squares[ROWS], shrink[ROWS];
  const int64_t n = chunk->rows;
  int64_t columns = 0;
  for (int64_t k = 0; k < own->features; k++)
    if (own->member[3 * k] < -1) columns++;
  for (int64_t start = 0; start < n; start += ROWS) {
    const int64_t rows = n - start < ROWS ? n - start : ROWS;
    for (int64_t k = 0; k < own->functions; k++) {
      const uint16_t *codes = chunk->codes + own->column[k] * n + start;
      const double *table = own->table[k];
      for (int64_t i = 0; i < rows; i++) taken[k][i] = table[codes[i]];
      for (int64_t i = rows; i < ROWS; i++) taken[k][i] = 0.0;
    }
    /* Factors of records that are not there are zero, and so is what they contribute. */
    for (int64_t k = 0; k < chunk->factors; k++)
      for (int64_t i = 0; i < ROWS; i++) factors[k][i] = i < rows ? chunk->factor[k * n + start + i] : 0.0;
    for (int64_t k = 0; k < columns; k++)
      for (int64_t i = 0; i < ROWS; i++) given[k][i] = i < rows ? chunk->values[k][start + i] : 0.0;
    int64_t outside = 0;
    for (int i = 0; i < ROWS; i++) squares[i] = 0.0;
    for (int64_t k = 0; k < own->features; k++) {
      multiply(own, k, taken, given, factors, products);
      outside |= round_off(grid, products, kept[k], squares);
    }
    if (outside) return 1;
    const int64_t over = shrink_to(grid, squares, shrink);
    for (int64_t k = 0; k < own->features; k++) {
      double *own_steps = kept[k], lanes[LANES] = {0.0};
      if (over)
        for (int i = 0; i < ROWS; i++) own_steps[i] = trunc(own_steps[i] * shrink[i]);
      if (steps) {
        for (int64_t i = 0; i < rows; i++) steps[k * apart + start + i] = own_steps[i];
      } else {
        for (int i = 0; i < ROWS; i += LANES)
          for (int lane = 0; lane < LANES; lane++) lanes[lane] += own_steps[i + lane];
        double sum = 0.0;
        for (int lane = 0; lane < LANES; lane++) sum += lanes[lane];
        sums[k] += (int64_t)sum;
      }
    }
  }
  return 0;
}

struct tables {
  double constant;
  int64_t groups;
  const int64_t *group_end;   /* of each group, where its tables end */
  const int64_t *column;      /* the covariate of each table */
  const double *const *table;
  const int64_t *ahead_end;   /* of each group, where the functions that it is multiplied by end */
  const int64_t *ahead_column;
  const double *const *ahead;
};

/* Sums of tables over codes, each group times functions of further covariates. */
void look_up(const struct tables *own, int64_t n, const uint16_t *codes, double *out) {
  double value[ROWS];
  for (int64_t start = 0; start < n; start += ROWS) {
    const int64_t rows = n - start < ROWS ? n - start : ROWS;
    double *total = out + start;
    for (int64_t i = 0; i < rows; i++) total[i] = own->constant;
    int64_t table = 0, ahead = 0;
    for (int64_t group = 0; group < own->groups; group++) {
      for (int64_t i = 0; i < rows; i++) value[i] = 0.0;
      for (; table < own->group_end[group]; table++) {
        const double *cells = own->table[table];
        const uint16_t *one = codes + own->column[table] * n + start;
        for (int64_t i = 0; i < rows; i++) value[i] += cells[one[i]];
      }
      for (; ahead < own->ahead_end[group]; ahead++) {
        const double *cells = own->ahead[ahead];
        const uint16_t *one = codes + own->ahead_column[ahead] * n + start;
        for (int64_t i = 0; i < rows; i++) value[i] *= cells[one[i]];
      }
      for (int64_t i = 0; i < rows; i++) total[i] += value[i];
    }
  }
}

/* Sums of products of two columns, whole numbers that float64 adds up exactly: here any order is as good, and fused
   multiplication too. A tile of TALL by WIDE sums stays in registers. */
#if defined(__AVX512F__)
#include <immintrin.h>
typedef __m512d lanes;
#define WIDTH 8
#define TALL 4
#define WIDE 6
#define LOAD(from) _mm512_loadu_pd(from)
#define ADD_PRODUCT(sum, one, other) _mm512_fmadd_pd(one, other, sum)
/* Loaded once and kept in a register: what spans two cache lines would be loaded for every product. */
#define KEEP(value) __asm__("" : "+v"(value))
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
typedef __m256d lanes;
#define WIDTH 4
#define TALL 3
#define WIDE 4
#define LOAD(from) _mm256_loadu_pd(from)
#define ADD_PRODUCT(sum, one, other) _mm256_fmadd_pd(one, other, sum)
#else
#include <string.h>
typedef double lanes __attribute__((vector_size(16)));
#define WIDTH 2
#define TALL 4
#define WIDE 4
static inline lanes load_lanes(const double *from) {
  lanes found;
  memcpy(&found, from, sizeof found);
  return found;
}
#define LOAD(from) load_lanes(from)
#define ADD_PRODUCT(sum, one, other) ((sum) + (one) * (other))
#endif
#ifndef KEEP
#define KEEP(value)
#endif
/* Records whose columns are used again while they are in the cache. */
#define DEEP 512

/* Where the sum for columns i <= j stands: the diagonal first, then what is above it row by row. */
static int64_t place(int64_t m, int64_t i, int64_t j) {
  return i == j ? i : m + i * (2 * m - i - 1) / 2 + j - i - 1;
}

static double total(lanes sums) {
  double each[WIDTH], sum = 0.0;
  __builtin_memcpy(each, &sums, sizeof each);
  for (int lane = 0; lane < WIDTH; lane++) sum += each[lane];
  return sum;
}

static void tile(const double *steps, int64_t apart, int64_t rows, int64_t m, int64_t i, int64_t j, int64_t *out) {
  lanes sums[TALL][WIDE], other[WIDE];
  const double *left[TALL], *right[WIDE];
  for (int a = 0; a < TALL; a++) left[a] = steps + (i + a < m ? i + a : i) * apart;
  for (int b = 0; b < WIDE; b++) right[b] = steps + (j + b < m ? j + b : j) * apart;
  for (int a = 0; a < TALL; a++)
    for (int b = 0; b < WIDE; b++) sums[a][b] = (lanes){0.0};
  int64_t row = 0;
  for (; row + WIDTH <= rows; row += WIDTH) {
    for (int b = 0; b < WIDE; b++) {
      other[b] = LOAD(right[b] + row);
      KEEP(other[b]);
    }
    for (int a = 0; a < TALL; a++) {
      const lanes one = LOAD(left[a] + row);
      for (int b = 0; b < WIDE; b++) sums[a][b] = ADD_PRODUCT(sums[a][b], one, other[b]);
    }
  }
  for (int a = 0; a < TALL; a++)
    for (int b = 0; b < WIDE; b++)
      if (i + a < m && j + b < m && i + a <= j + b) {
        double sum = total(sums[a][b]);
        for (int64_t rest = row; rest < rows; rest++) sum += left[a][rest] * right[b][rest];
        out[place(m, i + a, j + b)] += (int64_t)sum;
      }
}

/* Numbers in a register: with fewer than eight, a matrix product by BLAS is as fast. */
int64_t width(void) { return WIDTH; }

/* Second moments of columns of whole numbers that lie so far ``apart``. */
void second_moments(const double *steps, int64_t apart, int64_t rows, int64_t m, int64_t *out) {
  for (int64_t start = 0; start < rows; start += DEEP) {
    const int64_t deep = rows - start < DEEP ? rows - start : DEEP;
    for (int64_t j = 0; j < m; j += WIDE)
      for (int64_t i = 0; i < m && i < j + WIDE; i += TALL) tile(steps + start, apart, deep, m, i, j, out);
  }
}
