/* SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
 * SPDX-License-Identifier: Apache-2.0 */

/* A client of the shared library: client [PRESET]. Two ranks of one process average a gradient; memcpy stands where a program has its
 * transport, and tersum_add does all sums. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tersum_c.h>

enum { RANKS = 2, ROWS = 64, COLUMNS = 256, D = ROWS * COLUMNS };

typedef struct rank_data {
  tersum_codec* codec;
  void* state;
  char* workspace;
  float* gradient;
} rank_data;

static void must(int result)
{
  if (result == TERSUM_OK) { return; }
  fprintf(stderr, "%s\n", tersum_last_error());
  exit(1);
}

static void* allocate(size_t bytes) { return aligned_alloc(16, (bytes + 31) / 16 * 16); }

static void meet(rank_data const* ranks, size_t index, tersum_step const* step)
{
  size_t const bytes = step->count * step->element_bytes;
  if (step->kind == TERSUM_REDUCE) {
    char* const sum = ranks[0].workspace + step->offset;
    for (int k = 1; k < RANKS; ++k) {
      must(tersum_add(ranks[0].codec, index, ranks[0].workspace, sum, sum, ranks[k].workspace + step->offset, 0, step->count, NULL));
    }
    for (int k = 1; k < RANKS; ++k) { memcpy(ranks[k].workspace + step->offset, sum, bytes); }
    return;
  }
  for (int to = 0; to < RANKS; ++to) {
    for (int from = 0; from < RANKS; ++from) {
      size_t const part = (size_t)from * bytes;
      if (step->kind == TERSUM_SCATTER) {
        memcpy(ranks[to].workspace + step->received_offset + part, ranks[from].workspace + step->offset + (size_t)to * bytes, bytes);
      } else if (step->kind == TERSUM_GATHER && to != from) {
        memcpy(ranks[to].workspace + step->offset + part, ranks[from].workspace + step->offset + part, bytes);
      }
    }
  }
}

int main(int count, char** arguments)
{
  if (tersum_c_version() != TERSUM_C_VERSION) { return 1; }
  tersum_tensor const matrix = {ROWS, COLUMNS, 0, 1, 0};
  rank_data ranks[RANKS];
  for (int k = 0; k < RANKS; ++k) {
    tersum_options options;
    tersum_default_options(&options);
    options.preset       = count > 1 ? arguments[1] : "two_shot_4";
    options.coordinates  = D;
    options.tensors      = &matrix;
    options.tensor_count = 1;
    options.world        = RANKS;
    options.rank         = k;
    must(tersum_open(&options, &ranks[k].codec));
    ranks[k].state     = allocate(tersum_state_bytes(ranks[k].codec));
    ranks[k].workspace = allocate(tersum_workspace_bytes(ranks[k].codec));
    ranks[k].gradient  = allocate(D * sizeof(float));
    must(tersum_initialize(ranks[k].codec, ranks[k].state, 42, NULL));
    for (int i = 0; i < D; ++i) { ranks[k].gradient[i] = (float)(k + 1) * (float)(i % 7 - 3); }
  }
  for (size_t index = 0; index < tersum_step_count(ranks[0].codec); ++index) {
    tersum_step step;
    must(tersum_get_step(ranks[0].codec, index, &step));
    if (step.kind != TERSUM_CALL) { meet(ranks, index, &step); }
    for (int k = 0; k < RANKS && step.kind == TERSUM_CALL; ++k) {
      must(tersum_run(ranks[k].codec, index, ranks[k].gradient, ranks[k].state, ranks[k].workspace, NULL));
    }
  }
  double error = 0, energy = 0;
  for (int i = 0; i < D; ++i) {
    double const mean = 1.5 * (i % 7 - 3);
    error += (ranks[0].gradient[i] - mean) * (ranks[0].gradient[i] - mean);
    energy += mean * mean;
  }
  int const equal = memcmp(ranks[0].gradient, ranks[1].gradient, D * sizeof(float)) == 0;
  printf("tersum %s: %.2f bits, error %.4f, ranks %s\n", tersum_version(), tersum_bits_per_coordinate(ranks[0].codec), error / energy,
         equal ? "equal" : "differ");
  for (int k = 0; k < RANKS; ++k) {
    tersum_close(ranks[k].codec);
    free(ranks[k].state);
    free(ranks[k].workspace);
    free(ranks[k].gradient);
  }
  return equal && error < .1 * energy ? 0 : 1;
}
