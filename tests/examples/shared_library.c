/* SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
 * SPDX-License-Identifier: Apache-2.0 */

/* The shared library from C: every preset among three ranks of one process, states that are saved and loaded, arguments
 * at fault, and one codec used by many threads. */

#include "tersum_c.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, ROWS = 96, COLUMNS = 131, VECTOR = 77, D = ROWS * COLUMNS + VECTOR };

static _Atomic int failures = 0;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      printf("%s:%d: %s does not hold (%s)\n", __FILE__, __LINE__, #condition, tersum_last_error()); \
      ++failures;                                                                                  \
    }                                                                                              \
  } while (0)

static tersum_tensor const tensors[] = {{ROWS, COLUMNS, 0, 1, 0}, {1, VECTOR, ROWS * COLUMNS, 1, 0}};

static tersum_options options_of(char const* preset, int rank)
{
  tersum_options o;
  tersum_default_options(&o);
  o.preset       = preset;
  o.coordinates  = D;
  o.tensors      = tensors;
  o.tensor_count = 2;
  o.world        = RANKS;
  o.rank         = rank;
  return o;
}

static void* aligned(size_t bytes)
{
  void* memory = aligned_alloc(16, (bytes + 31) / 16 * 16);
  if (memory == NULL) { abort(); }
  memset(memory, 0xa5, (bytes + 31) / 16 * 16);
  return memory;
}

/* A gradient that is the same on every machine. */
static float coordinate(int rank, int step, size_t i)
{
  uint32_t x = (uint32_t)(i * 2654435761u) + (uint32_t)rank * 97u + (uint32_t)step * 7919u;
  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  return ((float)(x >> 8) / 8388608.0f - 1.0f) * (i % 300 < 150 ? 1.0f : 0.01f);
}

typedef struct rank_of_test {
  tersum_codec* codec;
  void* state;
  char* workspace;
  float* gradient;
} rank_of_test;

static void open_rank(rank_of_test* r, char const* preset, int rank, uint64_t const* boundaries)
{
  tersum_options o = options_of(preset, rank);
  o.boundaries     = boundaries;
  r->codec         = NULL;
  CHECK(tersum_open(&o, &r->codec) == TERSUM_OK);
  if (r->codec == NULL) { exit(1); }
  r->state     = aligned(tersum_state_bytes(r->codec));
  r->workspace = aligned(tersum_workspace_bytes(r->codec));
  r->gradient  = aligned(D * sizeof(float));
  CHECK(tersum_initialize(r->codec, r->state, 42, NULL) == TERSUM_OK);
}

static void close_rank(rank_of_test* r)
{
  tersum_close(r->codec);
  free(r->state);
  free(r->workspace);
  free(r->gradient);
}

/* A round of all ranks, in their order. */
static void meet(rank_of_test* ranks, size_t index, tersum_step const* step)
{
  size_t const bytes = step->count * step->element_bytes;
  if (step->kind == TERSUM_REDUCE) {
    char* sum = aligned(bytes);
    char* place[RANKS]; /* where a round lies may depend on the rank */
    for (int k = 0; k < RANKS; ++k) {
      tersum_step own;
      CHECK(tersum_get_step(ranks[k].codec, index, &own) == TERSUM_OK);
      CHECK(own.count == step->count);
      place[k] = ranks[k].workspace + own.offset;
    }
    memcpy(sum, place[0], bytes);
    for (int k = 1; k < RANKS; ++k) {
      char* const add = place[k];
      /* In two pieces: an operation may depend on the position. */
      size_t const cut = step->count / 3;
      CHECK(tersum_add(ranks[k].codec, index, ranks[k].workspace, sum, sum, add, 0, cut, NULL) == TERSUM_OK);
      CHECK(tersum_add(ranks[k].codec, index, ranks[k].workspace, sum + cut * step->element_bytes,
                       sum + cut * step->element_bytes, add + cut * step->element_bytes, cut, step->count - cut,
                       NULL) == TERSUM_OK);
    }
    if (step->operation == TERSUM_SUM && step->element == TERSUM_FLOAT) {
      /* The operation that transports have must be the codec's own. */
      for (size_t i = 0; i < step->count; ++i) {
        float plain = ((float*)place[0])[i];
        for (int k = 1; k < RANKS; ++k) { plain += ((float*)place[k])[i]; }
        if (memcmp(&plain, (float*)sum + i, sizeof plain) != 0) {
          CHECK(!"a sum of floats is that of C");
          break;
        }
      }
    }
    for (int k = 0; k < RANKS; ++k) { memcpy(place[k], sum, bytes); }
    free(sum);
  } else if (step->kind == TERSUM_SHARDS) {
    for (int to = 0; to < RANKS; ++to) {
      tersum_step own;
      CHECK(tersum_get_step(ranks[to].codec, index, &own) == TERSUM_OK);
      char* at = ranks[to].workspace + own.received_offset;
      for (int from = 0; from < RANKS; ++from) {
        size_t offset = 0, size = 0;
        CHECK(tersum_get_part(ranks[from].codec, index, to, &offset, &size) == TERSUM_OK);
        memcpy(at, ranks[from].workspace + offset, size);
        at += size;
      }
    }
  } else if (step->kind == TERSUM_SCATTER) {
    for (int to = 0; to < RANKS; ++to) {
      for (int from = 0; from < RANKS; ++from) {
        memcpy(ranks[to].workspace + step->received_offset + (size_t)from * bytes,
               ranks[from].workspace + step->offset + (size_t)to * bytes, bytes);
      }
    }
  } else {
    for (int to = 0; to < RANKS; ++to) {
      for (int from = 0; from < RANKS; ++from) {
        size_t const at = step->offset + (size_t)from * bytes;
        if (to != from) { memcpy(ranks[to].workspace + at, ranks[from].workspace + at, bytes); }
      }
    }
  }
}

static void exchange(rank_of_test* ranks, int number)
{
  for (int k = 0; k < RANKS; ++k) {
    for (size_t i = 0; i < D; ++i) { ranks[k].gradient[i] = coordinate(k, number, i); }
  }
  for (size_t i = 0; i < tersum_step_count(ranks[0].codec); ++i) {
    tersum_step step;
    CHECK(tersum_get_step(ranks[0].codec, i, &step) == TERSUM_OK);
    if (step.kind != TERSUM_CALL) {
      meet(ranks, i, &step);
      continue;
    }
    for (int k = 0; k < RANKS; ++k) {
      CHECK(tersum_run(ranks[k].codec, i, ranks[k].gradient, ranks[k].state, ranks[k].workspace, NULL) == TERSUM_OK);
    }
  }
}

/* An exchange of one rank. */
static void exchange_alone(tersum_codec const* codec, float* gradient, void* state, char* workspace)
{
  CHECK(tersum_initialize(codec, state, 7, NULL) == TERSUM_OK);
  for (size_t i = 0; i < tersum_step_count(codec); ++i) {
    tersum_step step;
    CHECK(tersum_get_step(codec, i, &step) == TERSUM_OK);
    size_t offset = step.offset, bytes = step.count * step.element_bytes;
    if (step.kind == TERSUM_CALL) {
      CHECK(tersum_run(codec, i, gradient, state, workspace, NULL) == TERSUM_OK);
    } else if (step.kind == TERSUM_SHARDS) {
      CHECK(tersum_get_part(codec, i, 0, &offset, &bytes) == TERSUM_OK);
    }
    if (step.kind == TERSUM_SHARDS || step.kind == TERSUM_SCATTER) {
      memcpy(workspace + step.received_offset, workspace + offset, bytes);
    }
  }
}

/* Every bit that changes in what was saved is found before a state is written; what seals keep is found in states
   themselves, and without one what the plan says of them. */
static void check_damage(rank_of_test const* r)
{
  size_t const bytes  = tersum_saved_bytes(r->codec);
  size_t const header = bytes - tersum_state_bytes(r->codec);
  char* saved         = aligned(bytes);
  char* before        = aligned(bytes);
  CHECK(tersum_save(r->codec, r->state, saved, bytes, NULL) == TERSUM_OK);
  memcpy(before, r->state, bytes - header);
  CHECK(tersum_check_saved(r->codec, saved, bytes) == TERSUM_OK);
  CHECK(tersum_check_saved(NULL, saved, bytes) == TERSUM_OK);
  CHECK(tersum_check_saved(NULL, saved, bytes - 1) == TERSUM_INVALID_ARGUMENT);
  tersum_seal seal, other;
  CHECK(tersum_seal_state(r->codec, r->state, &seal, NULL) == TERSUM_OK);
  CHECK(tersum_check_state(r->codec, r->state, NULL, NULL) == TERSUM_OK);
  CHECK(tersum_check_state(r->codec, r->state, &seal, NULL) == TERSUM_OK);
  CHECK(seal.bytes == tersum_state_bytes(r->codec));
  other = seal;
  ++other.version;
  CHECK(tersum_check_state(r->codec, r->state, &other, NULL) == TERSUM_INVALID_ARGUMENT);
  CHECK(strstr(tersum_last_error(), "version") != NULL);

  size_t believed = 0, loaded = 0, unsealed = 0;
  for (size_t bit = 0; bit < 8 * bytes; bit += bit < 8 * 2 * 64 ? 7 : 8 * bytes / 60 + 7) {
    saved[bit / 8] ^= (char)(1 << bit % 8);
    believed += tersum_check_saved(NULL, saved, bytes) == TERSUM_OK;
    loaded += tersum_load(r->codec, saved, bytes, r->state, NULL) == TERSUM_OK;
    saved[bit / 8] ^= (char)(1 << bit % 8);
    if (bit / 8 < header) { continue; }
    ((char*)r->state)[bit / 8 - header] ^= (char)(1 << bit % 8);
    believed += tersum_check_state(r->codec, r->state, &seal, NULL) == TERSUM_OK;
    ((char*)r->state)[bit / 8 - header] ^= (char)(1 << bit % 8);
  }
  CHECK(believed == 0);
  CHECK(loaded == 0);
  CHECK(memcmp(r->state, before, bytes - header) == 0);
  /* The numbers of tensors, chunks and coordinates, and the fingerprint, are held to the plan. */
  for (size_t at = 24; at < 64; at += at == 40 ? 16 : 8) {
    ((char*)r->state)[at] ^= 1;
    unsealed += tersum_check_state(r->codec, r->state, NULL, NULL) == TERSUM_OK;
    /* What is damaged is saved as it is, and refused when it is loaded. */
    CHECK(tersum_save(r->codec, r->state, saved, bytes, NULL) == TERSUM_OK);
    CHECK(tersum_check_saved(NULL, saved, bytes) == TERSUM_OK);
    CHECK(tersum_check_saved(r->codec, saved, bytes) == TERSUM_INVALID_ARGUMENT);
    CHECK(strstr(tersum_last_error(), "damaged") != NULL);
    ((char*)r->state)[at] ^= 1;
  }
  CHECK(unsealed == 0);
  CHECK(tersum_load(r->codec, saved, bytes, r->state, NULL) == TERSUM_INVALID_ARGUMENT);
  CHECK(memcmp(r->state, before, bytes - header) == 0);
  free(saved);
  free(before);
}

/* Each rank has the mean of its shard, and the rest of its gradient as it was: put together, the mean with the error of
   one encoding. Lloyd-Max codes of normal values have distortions D of .363, .1175, .0345 and .0095 for 1 to 4 bits (Max
   1960) and about 4e-5 for 8. Scaled so that they are unbiased they lose D / (1 - D) of the energy, independently on each
   rank; a tenth is for chance, as 12576 coordinates make it 1 %, and for rotated values being near normal only. */
static void check_shards(char const* preset)
{
  static uint64_t const boundaries[RANKS + 1] = {0, 1500, 9001, D};
  rank_of_test ranks[RANKS];
  for (int k = 0; k < RANKS; ++k) {
    open_rank(&ranks[k], preset, k, boundaries);
    CHECK(tersum_shard_begin(ranks[k].codec) == boundaries[k]);
    CHECK(tersum_shard_size(ranks[k].codec) == boundaries[k + 1] - boundaries[k]);
  }
  exchange(ranks, 0);
  double lost = 0, energies = 0, kept = 0;
  for (int k = 0; k < RANKS; ++k) {
    for (size_t i = 0; i < D; ++i) {
      if (i < boundaries[k] || i >= boundaries[k + 1]) {
        float const before = coordinate(k, 0, i);
        if (memcmp(&before, &ranks[k].gradient[i], sizeof before) != 0) { CHECK(!"the rest is as it was"); break; }
        continue;
      }
      double mean = 0;
      for (int of = 0; of < RANKS; ++of) { mean += coordinate(of, 0, i) / (double)RANKS; }
      lost += (mean - ranks[k].gradient[i]) * (mean - ranks[k].gradient[i]);
      kept += mean * mean;
      for (int of = 0; of < RANKS; ++of) { energies += coordinate(of, 0, i) * coordinate(of, 0, i); }
    }
  }
  double const distortions[] = {0, .3634, .1175, .03454, .009497, 0, 0, 0, 5e-5};
  if (strncmp(preset, "summed_shards_", 14) == 0) {
    /* Of codes that saturate in the sum of independent ranks .07 is lost by the library's tables, with 4 bits. */
    CHECK(lost > 0);
    CHECK(lost <= .12 * kept);
  } else {
    double const d = distortions[preset[strlen("sharded_")] - '0'];
    CHECK(lost <= 1.1 * d / (1 - d) * energies / (RANKS * RANKS));
  }
  check_damage(&ranks[1]);
  for (int k = 0; k < RANKS; ++k) { close_rank(&ranks[k]); }
}

/* A call with the sentence of an argument at fault, before anything is read. */
static void check_refused(int result, char const* argument)
{
  CHECK(result == TERSUM_INVALID_ARGUMENT);
  CHECK(strncmp(tersum_last_error(), argument, strlen(argument)) == 0);
}

/* A part of a gradient of tensors has those pieces of theirs that lie in it; a vector bypasses there, too. */
static void check_parts(void)
{
  tersum_tensor const tensors[]  = {{50, 40, 0, 1, 0}, {300, 1, 2000, 1, 0}, {70, 10, 2300, 1, 0}};
  uint64_t const part[]          = {1990, 2900};
  tersum_options o;
  tersum_default_options(&o);
  o.preset       = "two_shot_4";
  o.coordinates  = 3000;
  o.tensors      = tensors;
  o.tensor_count = 3;
  o.boundaries   = part;
  tersum_codec* codec = NULL;
  CHECK(tersum_open(&o, &codec) == TERSUM_OK);
  if (codec == NULL) { return; }
  float gradient[910];
  for (int i = 0; i < 910; ++i) { gradient[i] = (float)(i % 13) - 6; }
  void* const state     = aligned(tersum_state_bytes(codec));
  void* const workspace = aligned(tersum_workspace_bytes(codec));
  exchange_alone(codec, gradient, state, workspace);
  int exact = 0;
  for (int i = 0; i < 910; ++i) { exact += gradient[i] == (float)(i % 13) - 6; }
  for (int i = 10; i < 310; ++i) { CHECK(gradient[i] == (float)(i % 13) - 6); }
  CHECK(exact < 400); /* what is compressed is not */
  tersum_close(codec);
  free(state);
  free(workspace);
  o.boundaries = (uint64_t const[]){2900, 1990};
  check_refused(tersum_open(&o, &codec), "options.boundaries");
}

/* Memory that is null or misaligned, and a wrong order, are refused in every call of every preset. */
static void check_memory(char const* preset)
{
  tersum_tensor const matrix = {60, 80, 0, 1, 0};
  tersum_options o           = options_of(preset, 0);
  o.coordinates              = 4800;
  o.tensors                  = &matrix;
  o.tensor_count             = 1;
  tersum_codec* codec        = NULL;
  CHECK(tersum_open(&o, &codec) == TERSUM_OK);
  if (codec == NULL) { return; }
  char* const state     = aligned(tersum_state_bytes(codec) + 8);
  char* const workspace = aligned(tersum_workspace_bytes(codec) + 8);
  char* const gradient  = aligned(4800 * sizeof(float) + 8);
  CHECK(tersum_initialize(codec, state, 1, NULL) == TERSUM_OK);
  for (size_t i = 0; i < tersum_step_count(codec); ++i) {
    tersum_step step;
    CHECK(tersum_get_step(codec, i, &step) == TERSUM_OK);
    if (step.kind == TERSUM_CALL) {
      check_refused(tersum_run(codec, i, NULL, state, workspace, NULL), "gradient");
      check_refused(tersum_run(codec, i, gradient + 2, state, workspace, NULL), "gradient");
      check_refused(tersum_run(codec, i, gradient, NULL, workspace, NULL), "state");
      check_refused(tersum_run(codec, i, gradient, state + 8, workspace, NULL), "state");
      check_refused(tersum_run(codec, i, gradient, state, NULL, NULL), "workspace");
      check_refused(tersum_run(codec, i, gradient, state, workspace + 8, NULL), "workspace");
      /* What it would read in a workspace without the calls before is how far to read. */
      if (i > 0) { check_refused(tersum_run(codec, i, gradient, state, workspace, NULL), "steps are out of order"); }
    } else if (step.kind == TERSUM_REDUCE && step.count > 0) {
      char* const at = workspace + step.offset;
      check_refused(tersum_add(codec, i, NULL, at, at, at, 0, 1, NULL), "workspace");
      check_refused(tersum_add(codec, i, workspace + 8, at, at, at, 0, 1, NULL), "workspace");
      check_refused(tersum_add(codec, i, workspace, NULL, at, at, 0, 1, NULL), "to, a or b");
      check_refused(tersum_add(codec, i, workspace, at, at, at, 0, 1, NULL), "steps are out of order");
      if (step.element_bytes > 1) {
        check_refused(tersum_add(codec, i, workspace, at, at, at + 1, 0, 1, NULL), "to, a or b");
      }
    }
  }
  tersum_seal seal;
  size_t const bytes = tersum_saved_bytes(codec);
  char* const saved  = aligned(bytes);
  check_refused(tersum_initialize(codec, state + 8, 1, NULL), "state");
  check_refused(tersum_save(codec, state + 8, saved, bytes, NULL), "state");
  check_refused(tersum_save(codec, state, NULL, bytes, NULL), "saved");
  check_refused(tersum_load(codec, saved, bytes, state + 8, NULL), "state");
  check_refused(tersum_check_state(codec, state + 8, NULL, NULL), "state");
  check_refused(tersum_seal_state(codec, state + 8, &seal, NULL), "state");
  check_refused(tersum_seal_state(codec, state, (tersum_seal*)(void*)((char*)&seal + 4), NULL), "seal");
  tersum_close(codec);
  free(state);
  free(workspace);
  free(gradient);
  free(saved);
}

/* Options of which one member is at fault are refused with a sentence that begins so, and leave no codec. */
#define CHECK_OPTIONS(preset, member, value, result, sentence)                                     \
  do {                                                                                             \
    tersum_options o    = options_of(preset, 0);                                                   \
    tersum_codec* codec = (tersum_codec*)1;                                                        \
    o.member            = value;                                                                   \
    CHECK(tersum_open(&o, &codec) == result && codec == NULL);                                     \
    CHECK(strncmp(tersum_last_error(), sentence, strlen(sentence)) == 0);                          \
  } while (0)

/* Of options pointers come first, then the world, which says how many boundaries there are, then tensors and boundaries. Sentences
   name what is in `tersum_options`. */
static void check_options(void)
{
  tersum_codec* codec = NULL;
  tersum_options o    = options_of("rotated_sat4", 0);
  check_refused(tersum_open(NULL, &codec), "options");
  check_refused(tersum_open((tersum_options const*)(void*)((char*)&o + 1), &codec), "options is");
  check_refused(tersum_open(&o, NULL), "codec");
  uint64_t const cuts[] = {0, 500, D}; /* for a world of 2 */
  o.world               = 0x7fffffff;
  o.rank                = 1;
  o.boundaries          = (uint64_t const*)(void*)((char*)cuts + 4);
  o.tensors             = (tersum_tensor const*)(void*)((char*)tensors + 2);
  check_refused(tersum_open(&o, &codec), "options.tensors is a null pointer or not aligned");
  o.tensors = tensors;
  check_refused(tersum_open(&o, &codec), "options.boundaries is not aligned");
  o.boundaries = cuts;
  for (size_t i = 0; i < tersum_preset_count(); ++i) {
    o.preset = tersum_preset_name(i);
    check_refused(tersum_open(&o, &codec), "options.world must be between 1 and 65534");
  }
  tersum_default_options(&o);
  CHECK(o.world == 1 && o.rank == -1);
  /* A count that is too large is found at the first tensor that does not fit. */
  tersum_tensor const one_more[] = {tensors[0], tensors[1], {1, 1, 5, 1, 0}};
  o                              = options_of("rotated_sat4", 0);
  o.tensors                      = one_more;
  o.tensor_count                 = SIZE_MAX / 8;
  check_refused(tersum_open(&o, &codec), "options.tensors must cover options.coordinates");
  o              = options_of("two_shot_4", 0);
  o.tensor_count = 0;
  o.coordinates  = (uint64_t)1 << 60;
  check_refused(tersum_open(&o, &codec), "options.coordinates");

  uint64_t const wrong[] = {0, 500, 400, D};
  CHECK_OPTIONS("sharded_4", boundaries, wrong, TERSUM_INVALID_ARGUMENT,
                "options.boundaries must be options.world + 1 ascending numbers from 0 to options.coordinates");
  CHECK_OPTIONS("rotated_sat4", coordinates, D + 1, TERSUM_INVALID_ARGUMENT, "options.tensors must cover options.coordinates");
  CHECK_OPTIONS("rotated_sat4", rank, RANKS, TERSUM_INVALID_ARGUMENT, "options.rank must be between 0 and options.world - 1");
  CHECK_OPTIONS("rotated_sat4", rank, -1, TERSUM_INVALID_ARGUMENT, "options.rank is not given");
  CHECK_OPTIONS("rotated_sat4", world, 0, TERSUM_INVALID_ARGUMENT, "options.world");
  CHECK_OPTIONS("rotated_sat4", struct_bytes, 8, TERSUM_INVALID_ARGUMENT, "options.struct_bytes");
  CHECK_OPTIONS("no_such_preset", rank, 0, TERSUM_INVALID_ARGUMENT, "options.preset");
  CHECK_OPTIONS(NULL, rank, 0, TERSUM_INVALID_ARGUMENT, "options.preset");
  CHECK_OPTIONS("allocated_2", bits, 1000, TERSUM_INVALID_ARGUMENT, "options.bits must be between");
  CHECK_OPTIONS("rotated_sat4", bits, 3, TERSUM_UNSUPPORTED, "options.bits");
  CHECK_OPTIONS("two_shot_4", weighting, .5f, TERSUM_UNSUPPORTED, "options.weighting");
  CHECK_OPTIONS("two_shot_4", clip, 2, TERSUM_UNSUPPORTED, "options.clip");
  CHECK_OPTIONS("fp16", element, TERSUM_INT8, TERSUM_INVALID_ARGUMENT, "options.element");
  CHECK_OPTIONS("fp16", threads, 0, TERSUM_INVALID_ARGUMENT, "options.threads");
  CHECK_OPTIONS("thc_wide4", world, 1000, TERSUM_WORLD_TOO_LARGE, "");
  if (!tersum_has_cuda()) { CHECK_OPTIONS("fp16", device, TERSUM_CUDA, TERSUM_UNSUPPORTED, "this library was built without CUDA"); }
}

static void check_preset(char const* preset)
{
  if (strncmp(preset, "sharded_", 8) == 0 || strncmp(preset, "summed_shards_", 14) == 0) {
    check_shards(preset);
    return;
  }
  rank_of_test ranks[RANKS];
  for (int k = 0; k < RANKS; ++k) { open_rank(&ranks[k], preset, k, NULL); }
  CHECK(tersum_fingerprint(ranks[0].codec, 1) == tersum_fingerprint(ranks[1].codec, 1));
  CHECK(tersum_fingerprint(ranks[0].codec, 1) != tersum_fingerprint(ranks[0].codec, 2));
  for (int number = 0; number < 2; ++number) {
    exchange(ranks, number);
    for (int k = 1; k < RANKS; ++k) { CHECK(memcmp(ranks[0].gradient, ranks[k].gradient, D * sizeof(float)) == 0); }
    int const exact = strcmp(preset, "fp32") == 0;
    /* What bypasses is a sum of three floats, divided: three roundings, of magnitudes up to 3. A whole vector is cast by
       casts, and TopK knows no bypass. */
    int const bypasses = tersum_bits_per_coordinate(ranks[0].codec) > 0 && strncmp(preset, "topk_", 5) != 0 &&
                         strncmp(preset, "thc_wide4", 9) != 0;
    for (size_t i = exact ? 0 : ROWS * COLUMNS; i < D && bypasses; ++i) {
      double mean = 0;
      for (int k = 0; k < RANKS; ++k) { mean += coordinate(k, number, i) / (double)RANKS; }
      if (!(fabs(ranks[0].gradient[i] - mean) <= 4 * 1.2e-7)) {
        printf("%s: coordinate %zu is %g instead of %g\n", preset, i, ranks[0].gradient[i], mean);
        CHECK(!"what bypasses is exact");
        break;
      }
    }
    CHECK(tersum_steps_done(ranks[0].codec, ranks[0].state) == (uint64_t)number + 1);
    CHECK(!tersum_was_non_finite(ranks[0].codec, ranks[0].state));
  }

  /* A state that was saved goes on as if nothing had happened; one of another rank is refused. */
  void* saved[RANKS];
  float* went_on = aligned(D * sizeof(float));
  for (int k = 0; k < RANKS; ++k) {
    saved[k] = aligned(tersum_saved_bytes(ranks[k].codec));
    CHECK(tersum_save(ranks[k].codec, ranks[k].state, saved[k], tersum_saved_bytes(ranks[k].codec), NULL) == TERSUM_OK);
  }
  exchange(ranks, 2);
  memcpy(went_on, ranks[0].gradient, D * sizeof(float));
  CHECK(tersum_load(ranks[0].codec, saved[1], tersum_saved_bytes(ranks[0].codec), ranks[0].state, NULL) ==
        TERSUM_INVALID_ARGUMENT);
  for (int k = 0; k < RANKS; ++k) {
    CHECK(tersum_load(ranks[k].codec, saved[k], tersum_saved_bytes(ranks[k].codec), ranks[k].state, NULL) == TERSUM_OK);
  }
  exchange(ranks, 2);
  CHECK(memcmp(went_on, ranks[0].gradient, D * sizeof(float)) == 0);
  check_damage(&ranks[1]);
  for (int k = 0; k < RANKS; ++k) {
    free(saved[k]);
    close_rank(&ranks[k]);
  }
  free(went_on);
}

static void check_refusals(void)
{
  /* Parameters that a preset has change it. */
  tersum_options o     = options_of("allocated_2", 0);
  tersum_codec* preset = NULL;
  tersum_codec* wider  = NULL;
  CHECK(tersum_open(&o, &preset) == TERSUM_OK);
  o.bits = 5;
  CHECK(tersum_open(&o, &wider) == TERSUM_OK);
  CHECK(tersum_bits_per_coordinate(wider) > 2 * tersum_bits_per_coordinate(preset));
  CHECK(tersum_fingerprint(wider, 0) != tersum_fingerprint(preset, 0));
  tersum_close(wider);
  o      = options_of("allocated_2", 0);
  o.bits = 1e-6f; /* does not pay for norms */
  CHECK(tersum_open(&o, &wider) == TERSUM_OK);
  CHECK(tersum_travels(preset) && !tersum_travels(wider));
  tersum_close(wider);
  tersum_close(preset);
  tersum_close(NULL);

  rank_of_test one;
  open_rank(&one, "rotated_sat4", 0, NULL);
  check_refused(tersum_measure(one.codec, NULL, one.state, one.workspace, NULL), "gradient");
  check_refused(tersum_measure(one.codec, one.gradient, one.state, one.workspace, one.state), "stream");
  CHECK(tersum_recompress(one.codec, one.gradient, one.state, one.workspace, NULL) == TERSUM_UNSUPPORTED);
  check_refused(tersum_run(one.codec, 99, one.gradient, one.state, one.workspace, NULL), "index");
  tersum_step step;
  check_refused(tersum_get_step(one.codec, 99, &step), "index");
  check_refused(tersum_add(one.codec, 0, one.workspace, one.gradient, one.gradient, one.gradient, 0, 1, NULL), "");
  char garbage[64] = {0};
  check_refused(tersum_load(one.codec, garbage, 64, one.state, NULL), "saved");
  check_refused(tersum_load(one.codec, garbage, 3, one.state, NULL), "saved");
  check_refused(tersum_check_saved(one.codec, NULL, 64), "saved");
  CHECK(tersum_check_saved(NULL, garbage, 64) == TERSUM_INVALID_ARGUMENT);
  CHECK(strstr(tersum_last_error(), "tersum_save") != NULL);
  check_refused(tersum_check_state(one.codec, NULL, NULL, NULL), "state");
  check_refused(tersum_check_state(NULL, one.state, NULL, NULL), "codec");
  check_refused(tersum_seal_state(one.codec, one.state, NULL, NULL), "seal");
  check_refused(tersum_check_state(one.codec, one.state, NULL, one.state), "stream");
  close_rank(&one);

  CHECK(tersum_preset_name(tersum_preset_count()) == NULL);
  CHECK(tersum_c_version() == TERSUM_C_VERSION);
  CHECK(strchr(tersum_version(), '.') != NULL);
}

/* Threads that use one codec, each with memory of its own, and that ask for all it says of itself. Half of them make errors
   meanwhile, each another one. */
enum { THREADS = 8 };

typedef struct thread_of_test {
  tersum_codec const* codec;
  char const* preset;
  int number;
  float* mean;
  char* saved; /* after the last exchange */
  pthread_barrier_t* all;
} thread_of_test;

/* An error of each kind of thread, and a word of its sentence. */
static char const* fail_as(tersum_codec const* codec, int number)
{
  tersum_step step;
  char const garbage[64] = {0};
  switch (number) {
    case 1:
      CHECK(tersum_run(codec, 0, NULL, NULL, NULL, NULL) == TERSUM_INVALID_ARGUMENT);
      return "gradient";
    case 3:
      CHECK(tersum_get_step(codec, 99, &step) == TERSUM_INVALID_ARGUMENT);
      return "index";
    case 5:
      CHECK(tersum_check_saved(codec, garbage, sizeof garbage) == TERSUM_INVALID_ARGUMENT);
      return "tersum_save";
    default:
      CHECK(tersum_open(NULL, &(tersum_codec*){NULL}) == TERSUM_INVALID_ARGUMENT);
      return "options";
  }
}

static void* use_codec(void* argument)
{
  thread_of_test const* t   = argument;
  tersum_codec const* codec = t->codec;
  size_t const saved_bytes  = tersum_saved_bytes(codec);
  void* state               = aligned(tersum_state_bytes(codec));
  char* workspace           = aligned(tersum_workspace_bytes(codec));
  int const fails           = t->number % 2;
  pthread_barrier_wait(t->all);
  /* The list of presets is made by whoever comes first. */
  size_t at = 0;
  while (at < tersum_preset_count() && strcmp(tersum_preset_name(at), t->preset) != 0) { ++at; }
  CHECK(at < tersum_preset_count());
  CHECK(strcmp(tersum_last_error(), "") == 0);
  for (int repeat = 0; repeat < 5; ++repeat) {
    tersum_codec* own = NULL;
    tersum_options o  = options_of(t->preset, -1); /* one rank need not say which it is */
    o.world           = 1;
    CHECK(tersum_open(&o, &own) == TERSUM_OK);
    CHECK(tersum_fingerprint(own, 5) == tersum_fingerprint(codec, 5));
    tersum_close(own);
    char const* const word = fails ? fail_as(codec, t->number) : "";
    for (size_t i = 0; i < D; ++i) { t->mean[i] = coordinate(0, 0, i); }
    exchange_alone(codec, t->mean, state, workspace);
    tersum_seal seal;
    CHECK(tersum_seal_state(codec, state, &seal, NULL) == TERSUM_OK);
    CHECK(tersum_check_state(codec, state, &seal, NULL) == TERSUM_OK);
    CHECK(tersum_save(codec, state, t->saved, saved_bytes, NULL) == TERSUM_OK);
    CHECK(tersum_load(codec, t->saved, saved_bytes, state, NULL) == TERSUM_OK);
    /* By now the others have failed, too: the error is still that of this thread, if it has made one. */
    pthread_barrier_wait(t->all);
    CHECK(fails ? strstr(tersum_last_error(), word) != NULL : strcmp(tersum_last_error(), "") == 0);
  }
  free(state);
  free(workspace);
  return NULL;
}

static void check_threads(char const* preset)
{
  tersum_codec* codec = NULL;
  tersum_options o    = options_of(preset, 0);
  o.world             = 1;
  CHECK(tersum_open(&o, &codec) == TERSUM_OK);
  size_t const saved_bytes = tersum_saved_bytes(codec);
  pthread_barrier_t all;
  pthread_t threads[THREADS];
  thread_of_test arguments[THREADS];
  CHECK(pthread_barrier_init(&all, NULL, THREADS) == 0);
  for (int k = 0; k < THREADS; ++k) {
    arguments[k] = (thread_of_test){codec, preset, k, aligned(D * sizeof(float)), aligned(saved_bytes), &all};
    if (pthread_create(&threads[k], NULL, use_codec, &arguments[k]) != 0) { abort(); }
  }
  for (int k = 0; k < THREADS; ++k) { pthread_join(threads[k], NULL); }
  for (int k = 0; k < THREADS; ++k) {
    CHECK(memcmp(arguments[0].mean, arguments[k].mean, D * sizeof(float)) == 0);
    CHECK(memcmp(arguments[0].saved, arguments[k].saved, saved_bytes) == 0);
    double energy = 0;
    for (size_t i = 0; i < D; ++i) { energy += (double)arguments[k].mean[i] * arguments[k].mean[i]; }
    CHECK(energy > 0);
  }
  for (int k = 0; k < THREADS; ++k) {
    free(arguments[k].mean);
    free(arguments[k].saved);
  }
  pthread_barrier_destroy(&all);
  tersum_close(codec);
}

/* One preset of each kind. */
static void check_all_threads(void)
{
  static char const* const presets[] = {"rotated_sat4", "topkc_b2_ef", "powersgd_r4", "allocated_2", "sharded_4"};
  for (size_t i = 0; i < sizeof presets / sizeof *presets; ++i) { check_threads(presets[i]); }
}

/* shared_library [threads]: all of it, or what threads do together. */
int main(int count, char** arguments)
{
  check_all_threads();
  CHECK(strcmp(tersum_last_error(), "") == 0); /* this thread has made no error yet */
  if (count > 1 && strcmp(arguments[1], "threads") == 0) {
    printf("threads, %d failures\n", failures);
    return failures == 0 ? 0 : 1;
  }
  check_refusals();
  check_parts();
  check_options();
  for (size_t i = 0; i < tersum_preset_count(); ++i) {
    check_memory(tersum_preset_name(i));
    CHECK(strlen(tersum_preset_summary(i)) > 0);
    check_preset(tersum_preset_name(i));
  }
  printf("%zu presets, %d failures\n", tersum_preset_count(), failures);
  return failures == 0 ? 0 : 1;
}
