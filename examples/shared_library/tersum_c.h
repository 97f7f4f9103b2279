/* SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
 * SPDX-License-Identifier: Apache-2.0 */

/** @file
 *  The presets of tersum behind a C interface, for languages that cannot include templates.
 *
 *      tersum_open(&options, &codec)                             once
 *      state = allocate(tersum_state_bytes(codec)); workspace = allocate(tersum_workspace_bytes(codec))
 *      tersum_initialize(codec, state, seed, NULL)
 *      for each step of training:
 *        for i in 0 .. tersum_step_count(codec) - 1:
 *          tersum_get_step(codec, i, &step)
 *          if step.kind is TERSUM_CALL: tersum_run(codec, i, gradient, state, workspace, NULL)
 *          else:                        your collective on the workspace, as the step says
 *
 *  An exchange is a list of steps: calls of this library, and rounds in which ranks meet. After the last one the gradient
 *  is the mean over the ranks, with the same bits on all of them. A call, or `tersum_add`, is refused unless the last call in its
 *  workspace was the one before; the first begins anew. Presets sharded_* and summed_shards_* are for reduce-scatters: there each rank
 *  gets the mean of its own shard, in its place in the gradient, and the rest stays as it was. The calls have the names of the library's own: measure,
 *  encode, recompress, decode.
 *
 *  Functions that can fail return TERSUM_OK or the class of the error; `tersum_last_error` has the sentence. Memory is the
 *  caller's: gradient, state and workspace are of the host or, for codecs opened on TERSUM_CUDA, of the device; state and
 *  workspace are aligned to 16 bytes. Null and misaligned memory is refused before anything is read. On TERSUM_CUDA the calls that take a stream enqueue on it, a `cudaStream_t`, and do
 *  not wait, so that a CUDA graph can capture them, except for those on states that are saved, loaded, sealed or checked:
 *  they wait for the stream, and refuse one that is being captured. The stream and all memory are of the device that is
 *  current in the calling thread. NULL names no stream: the default one is `cudaStreamLegacy`. On TERSUM_HOST the stream
 *  must be NULL, and calls return when the work is done.
 *
 *  Threads: a codec does not change after `tersum_open`, so any number of threads may use one at the same time, each with
 *  a gradient, a state and a workspace of its own. `tersum_close` must come after all of them. The last error is of the
 *  calling thread. */

#ifndef TERSUM_C_H
#define TERSUM_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of this interface: a library of another one has other structures or functions. */
#define TERSUM_C_VERSION 1

#if defined(__GNUC__)
#define TERSUM_C_API __attribute__((visibility("default")))
#else
#define TERSUM_C_API
#endif

/** The classes of errors. */
enum tersum_result {
  TERSUM_OK               = 0,
  TERSUM_INVALID_ARGUMENT = 1,
  TERSUM_WORLD_TOO_LARGE  = 2,
  TERSUM_UNSUPPORTED      = 3,
  TERSUM_EXECUTION_FAILED = 4,
  TERSUM_TRANSPORT_FAILED = 5,
  TERSUM_OUT_OF_MEMORY    = 6
};

/** Elements: of gradients the first three, of rounds any. TERSUM_BLOCK is `element_bytes` bytes that belong together. */
enum tersum_element {
  TERSUM_FLOAT    = 0,
  TERSUM_HALF     = 1,
  TERSUM_BFLOAT16 = 2,
  TERSUM_INT8     = 3,
  TERSUM_INT16    = 4,
  TERSUM_INT32    = 5,
  TERSUM_INT64    = 6,
  TERSUM_UINT8    = 7,
  TERSUM_UINT16   = 8,
  TERSUM_UINT32   = 9,
  TERSUM_UINT64   = 10,
  TERSUM_BLOCK    = 11
};

/** Where exchanges run. */
enum tersum_device { TERSUM_HOST = 0, TERSUM_CUDA = 1 };

/** What a step is. */
enum tersum_step_kind {
  TERSUM_CALL    = 0, /**< `tersum_run`, or the call of this name. */
  TERSUM_REDUCE  = 1, /**< An all-reduce in place of `count` elements at `offset`, by `operation`. */
  TERSUM_SCATTER = 2, /**< An all-to-all: part r of those at `offset` to rank r, received parts to `received_offset`. */
  TERSUM_GATHER  = 3, /**< An all-gather in place: rank r's part is the `count` elements from `offset` + r parts on. */
  TERSUM_SHARDS  = 4  /**< An all-to-all of parts that differ in size: `tersum_get_part` says where they lie. Received parts
                           go to `received_offset`, one after the other, each of the size of this rank's own. */
};

/** How a TERSUM_REDUCE combines two elements. */
enum tersum_operation {
  TERSUM_SUM   = 0, /**< Any transport's sum. */
  TERSUM_MAX   = 1, /**< Any transport's maximum. */
  TERSUM_OTHER = 2  /**< The codec's own: `tersum_add`. It need not be associative: all ranks need one order. */
};

/** One parameter tensor of a gradient, row-major. */
typedef struct tersum_tensor {
  uint64_t rows;
  uint64_t columns; /**< 1: a vector. */
  uint64_t offset;  /**< Its first coordinate in the gradient. */
  float weight;     /**< Multiplies its energies where chunks are chosen; 1 for no preference. */
  float reserved;   /**< 0. */
} tersum_tensor;

/** What a codec is opened for. Call `tersum_default_options` first and set what differs. */
typedef struct tersum_options {
  size_t struct_bytes;          /**< sizeof(tersum_options), so that later versions can add members. */
  char const* preset;           /**< A name, as of `tersum_preset_name`. */
  uint64_t coordinates;         /**< Length of the gradient. */
  tersum_tensor const* tensors; /**< They cover it without gaps, in ascending order; copied. NULL: one vector, as
                                     which topk_* take every gradient. */
  size_t tensor_count;
  uint64_t bypass_below; /**< Tensors of fewer coordinates are summed uncompressed. */
  int bypass_vectors;    /**< Whether tensors of one row or one column are; 1 by default. */
  uint64_t const* boundaries; /**< Of presets sharded_* and summed_shards_*: world + 1 ascending coordinates, from 0 to `coordinates`, between which
                                   the ranks' shards lie; copied. NULL: equal parts. Of other presets: two, between which the
                                   part lies that is exchanged, such as the shard of a rank: the gradient is this part, of
                                   whose pieces of tensors those bypass that would bypass whole. NULL: all. */
  int element;           /**< TERSUM_FLOAT (default), TERSUM_HALF or TERSUM_BFLOAT16. The latter two are converted to float in the
                              workspace, 4 bytes per coordinate. */
  int world;             /**< Ranks; 1 by default. */
  int rank;              /**< This one. -1 by default, which is refused where there are several. */
  int device;            /**< TERSUM_HOST by default. */
  int threads;           /**< Of the host; 1 by default. They change no bit. */
  float bits;            /**< The budget per coordinate of presets that choose chunks; 0: the preset's. */
  float weighting;       /**< The exponent of their energies; negative (default): the preset's. */
  float clip;            /**< Of presets with a range: where it ends; negative (default): the preset's. */
} tersum_options;

/** One entry of an exchange. Offsets are bytes from the begin of the workspace; of presets of shards they depend on the rank. */
typedef struct tersum_step {
  int kind;
  int element;            /**< Of rounds: the type of an element, which a transport must not cut. */
  int operation;          /**< Of TERSUM_REDUCE. */
  int associative;        /**< Of TERSUM_REDUCE: whether any order of the ranks gives the same bits. */
  size_t element_bytes;   /**< Of rounds. */
  size_t count;           /**< Elements; of TERSUM_SCATTER and TERSUM_GATHER: of one rank's part. */
  size_t offset;          /**< Where they begin. */
  size_t received_offset; /**< Of TERSUM_SCATTER: where the parts of all ranks for this one go, in their order. */
  char const* name;       /**< "measure", "encode", "recompress", "decode"; "reduce", "scatter", "gather", "shards". */
} tersum_step;

/** What is kept beside the bytes of a state that the caller saves himself. `tersum_save` puts the like into what it saves. */
typedef struct tersum_seal {
  uint64_t version; /**< Of the bytes of states. */
  uint64_t bytes;   /**< `tersum_state_bytes`. */
  uint64_t check;   /**< A hash of the codec's gradient, the version and all bytes. */
} tersum_seal;

typedef struct tersum_codec tersum_codec;

/** @name The library
 *  @{ */
/** Of the library, such as "0.2.0". */
TERSUM_C_API char const* tersum_version(void);
/** TERSUM_C_VERSION with which the library was compiled: compare it with yours before any other call. */
TERSUM_C_API int tersum_c_version(void);
/** Whether the library was built with CUDA. */
TERSUM_C_API int tersum_has_cuda(void);
TERSUM_C_API size_t tersum_preset_count(void);
/** @param index  Below `tersum_preset_count()`; otherwise NULL is returned. */
TERSUM_C_API char const* tersum_preset_name(size_t index);
/** One line. */
TERSUM_C_API char const* tersum_preset_summary(size_t index);
/** The sentence of this thread's last call that failed; valid until its next one. Empty before. */
TERSUM_C_API char const* tersum_last_error(void);
/** @} */

/** @name A codec
 *  One preset for one gradient and one rank. All ranks open the same one, apart from `rank`.
 *  @{ */
TERSUM_C_API void tersum_default_options(tersum_options* options);
/** @param codec  Receives the codec, or NULL. Close it with `tersum_close`. */
TERSUM_C_API int tersum_open(tersum_options const* options, tersum_codec** codec);
/** NULL is allowed. */
TERSUM_C_API void tersum_close(tersum_codec* codec);
TERSUM_C_API size_t tersum_state_bytes(tersum_codec const* codec);
TERSUM_C_API size_t tersum_workspace_bytes(tersum_codec const* codec);
/** What one rank gives to its collectives, all rounds together, per coordinate: 32 at most, where the bucket travels as floats. */
TERSUM_C_API double tersum_bits_per_coordinate(tersum_codec const* codec);
/** Whether the budget pays for anything. If not, the bucket travels as floats. */
TERSUM_C_API int tersum_travels(tersum_codec const* codec);
/** The same on all ranks if they opened the same codec and use the same seed. */
TERSUM_C_API uint64_t tersum_fingerprint(tersum_codec const* codec, uint64_t seed);
TERSUM_C_API size_t tersum_step_count(tersum_codec const* codec);
TERSUM_C_API int tersum_get_step(tersum_codec const* codec, size_t index, tersum_step* step);
/** Of step `index`, a TERSUM_SHARDS: where the part lies in the workspace that this rank sends to `rank`. */
TERSUM_C_API int tersum_get_part(tersum_codec const* codec, size_t index, int rank, size_t* offset, size_t* bytes);
/** The coordinates that this rank gets the mean of: all, but of presets of shards. */
TERSUM_C_API uint64_t tersum_shard_begin(tersum_codec const* codec);
TERSUM_C_API uint64_t tersum_shard_size(tersum_codec const* codec);
/** @} */

/** @name An exchange
 *  @{ */
/** Fills a state for its first exchange. @param seed  The same on every rank. */
TERSUM_C_API int tersum_initialize(tersum_codec const* codec, void* state, uint64_t seed, void* stream);
/** Does step `index`, which is a TERSUM_CALL. The gradient must not change between the first step and the last. */
TERSUM_C_API int tersum_run(tersum_codec const* codec, size_t index, void* gradient, void* state, void* workspace, void* stream);
/** The calls by name: each does the step of this name. Low-rank presets whose factors travel in codes have several of
 *  each, and are refused: use `tersum_run`. `tersum_recompress` exists where there is a TERSUM_SCATTER, and under
 *  summed_shards_*, where it adds up what a TERSUM_SHARDS has brought. */
TERSUM_C_API int tersum_measure(tersum_codec const* codec, void* gradient, void* state, void* workspace, void* stream);
TERSUM_C_API int tersum_encode(tersum_codec const* codec, void* gradient, void* state, void* workspace, void* stream);
TERSUM_C_API int tersum_recompress(tersum_codec const* codec, void* gradient, void* state, void* workspace, void* stream);
TERSUM_C_API int tersum_decode(tersum_codec const* codec, void* gradient, void* state, void* workspace, void* stream);
/** to[i] = a[i] + b[i] by the operation of round `index`, for elements first .. first + count - 1 of the round, of which
 *  `to`, `a` and `b` point to the first. `to` may be `a` or `b`. It does sums of every kind: of floats, halves and integers, maxima, and
 *  TERSUM_OTHER; so a transport needs to move bytes only. All ranks must add in one order. */
TERSUM_C_API int tersum_add(tersum_codec const* codec, size_t index, void* workspace, void* to, void const* a, void const* b,
                            size_t first, size_t count, void* stream);
/** @} */

/** @name A state
 *  Seed, number of the step, head-room and residual: what a checkpoint holds. Of the host, or copied from the device.
 *  @{ */
TERSUM_C_API size_t tersum_saved_bytes(tersum_codec const* codec);
/** @param saved  tersum_saved_bytes() bytes of the host. On TERSUM_CUDA it waits for the stream. */
TERSUM_C_API int tersum_save(tersum_codec const* codec, void const* state, void* saved, size_t saved_bytes, void* stream);
/** Refuses what another codec, world, rank or version of the library saved, and bytes that have changed since: then the state
 *  stays as it was. */
TERSUM_C_API int tersum_load(tersum_codec const* codec, void const* saved, size_t saved_bytes, void* state, void* stream);
/** Whether `tersum_load` would take the bytes. With NULL for the codec: whether `tersum_save` of this version wrote them for any
 *  codec and no bit has changed since. */
TERSUM_C_API int tersum_check_saved(tersum_codec const* codec, void const* saved, size_t saved_bytes);
/** For a state whose bytes the caller saves himself. On TERSUM_CUDA it waits for the stream. @param seal  Receives it. */
TERSUM_C_API int tersum_seal_state(tersum_codec const* codec, void const* state, tersum_seal* seal, void* stream);
/** Whether an exchange can use the state: whether its header, records and tables are those of the codec. On TERSUM_CUDA it waits
 *  for the stream. @param seal  NULL, or what the state was sealed with: then every bit that has changed is found. */
TERSUM_C_API int tersum_check_state(tersum_codec const* codec, void const* state, tersum_seal const* seal, void* stream);
/** Where the residual of the gradient's coordinates begins in the state, in bytes: `coordinates` floats in their order;
 *  0 where the codec keeps none. */
TERSUM_C_API size_t tersum_residual_offset(tersum_codec const* codec);
/** Of a copy of the state in host memory: exchanges finished; whether a gradient was not finite in the last of them. */
TERSUM_C_API uint64_t tersum_steps_done(tersum_codec const* codec, void const* state);
TERSUM_C_API int tersum_was_non_finite(tersum_codec const* codec, void const* state);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
