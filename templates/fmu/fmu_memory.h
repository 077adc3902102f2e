/* fmu_memory.h - creates instances, and saves, restores and serializes their state.
 *
 * A saved state is a copy of the block of memory of an instance (fmu_data.h) behind a header. Restored at another
 * address, or by another process, its pointers are moved.
 */
#ifndef FMU_MEMORY_H
#define FMU_MEMORY_H

#include "fmu_values.h"

#include <stdint.h>
#include <stdlib.h>

#define FMU_TOKEN_LENGTH 80

typedef struct {
  char token[FMU_TOKEN_LENGTH];
  size_t size;       /* of the block that follows */
  uintptr_t block;   /* its address when it was saved, and */
  uintptr_t library; /* that of `fmu`, from which functions and constants of the library have fixed distances */
} fmu_saved;

/* A library is not larger than this. */
#define FMU_LIBRARY_SIZE ((uintptr_t)1 << 26)

static inline fmu_saved *fmu_save(const fmu_instance *instance) {
  fmu_saved *saved = (fmu_saved *)calloc(1, sizeof *saved + instance->size);
  if (saved != NULL) {
    strncpy(saved->token, fmu.token, FMU_TOKEN_LENGTH - 1);
    saved->size = instance->size;
    saved->block = (uintptr_t)instance->data;
    saved->library = (uintptr_t)&fmu;
    memcpy(saved + 1, instance->data, instance->size);
  }
  return saved;
}

/* Moves the pointers of a restored block. Pointers are only in the fmu_data at its beginning; a word of it is a pointer
 * if it is an address in the block or near the library: as a double it would be a time or a step below 1e-300. */
static inline void fmu_relocate(fmu_data *d, const fmu_saved *saved) {
  const uintptr_t block = (uintptr_t)d, library = (uintptr_t)&fmu;
  char *bytes = (char *)d;
  for (size_t at = 0; at + sizeof(uintptr_t) <= sizeof *d; at += sizeof(uintptr_t)) {
    uintptr_t word;
    memcpy(&word, bytes + at, sizeof word);
    if (word >= saved->block && word < saved->block + saved->size) {
      word += block - saved->block;
    } else if (word + FMU_LIBRARY_SIZE >= saved->library && word < saved->library + FMU_LIBRARY_SIZE) {
      word += library - saved->library;
    }
    memcpy(bytes + at, &word, sizeof word);
  }
}

static inline int fmu_fits(const fmu_instance *instance, const fmu_saved *saved) {
  return saved != NULL && saved->size == instance->size && strncmp(saved->token, fmu.token, FMU_TOKEN_LENGTH - 1) == 0;
}

/* Returns 0 if the state does not belong to this model. */
static inline int fmu_restore(fmu_instance *instance, const fmu_saved *saved) {
  if (!fmu_fits(instance, saved)) {
    return 0;
  }
  memcpy(instance->data, saved + 1, instance->size);
  if (saved->block != (uintptr_t)instance->data || saved->library != (uintptr_t)&fmu) {
    fmu_relocate(instance->data, saved);
  }
  return 1;
}

static inline size_t fmu_saved_size(const fmu_saved *saved) { return sizeof *saved + saved->size; }

/* A copy of a serialized state, or NULL if it does not belong to this model or there is no memory. */
static inline fmu_saved *fmu_load(const fmu_instance *instance, const void *bytes, size_t size) {
  fmu_saved *saved = (fmu_saved *)(size == sizeof *saved + instance->size ? malloc(size) : NULL);
  if (saved != NULL) {
    memcpy(saved, bytes, size);
    if (!fmu_fits(instance, saved)) {
      free(saved);
      saved = NULL;
    }
  }
  return saved;
}

static inline void fmu_free(fmu_instance *instance) {
  free(instance->data);
  free(instance->name);
  free(instance->callbacks);
  free(instance);
}

/* A new instance with its default state; NULL without memory. `callbacks` (malloc) belongs to it from then on. */
static inline fmu_instance *fmu_create(const char *name, int cosimulation, void *callbacks) {
  fmu_instance *instance = (fmu_instance *)calloc(1, sizeof *instance);
  fmu_data sizes;
  if (instance == NULL) {
    free(callbacks);
    return NULL;
  }
  fmu_describe(&sizes);
  instance->callbacks = callbacks;
  instance->size = fmu_place(&sizes, NULL);
  instance->name = (char *)malloc(strlen(name) + 1);
  instance->data = (fmu_data *)malloc(instance->size);
  if (instance->name == NULL || instance->data == NULL) {
    fmu_free(instance);
    return NULL;
  }
  memcpy(instance->name, name, strlen(name) + 1);
  fmu_reset(instance->data, instance->size, cosimulation);
  return instance;
}

#endif
