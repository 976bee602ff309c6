/* A fiber: a stack, and the place where its code goes on. AddressSanitizer is told of every change of stack. */
#ifndef NST_SOFTGPU_FIBER_H
#define NST_SOFTGPU_FIBER_H

#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <stdint.h>

#include "machine.h"

#if (!defined __x86_64__ && !defined __aarch64__) || defined SOFTGPU_UCONTEXT
#undef SOFTGPU_UCONTEXT
#define SOFTGPU_UCONTEXT 1
#include <ucontext.h>
#endif

struct Fiber {
  const void *bottom = nullptr; /* lowest address of the stack */
  size_t size = 0;
  bool started = false;
  void *fake_stack = nullptr; /* AddressSanitizer's */
#ifdef SOFTGPU_UCONTEXT
  ucontext_t context;
#else
  void *stack_pointer = nullptr;
#endif
};

/* Saves the callee's registers and the stack pointer at *save, goes on with another stack. */
extern "C" void softgpu_switch(void **save, void *go_on);

#if defined SOFTGPU_UCONTEXT
#elif defined __x86_64__
constexpr uint32_t FIBER_FRAME_WORDS = 8, FIBER_RETURN_WORD = 6;
asm(R"(
  .text
  .globl softgpu_switch
  .type softgpu_switch, @function
softgpu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size softgpu_switch, .-softgpu_switch
)");
#else
constexpr uint32_t FIBER_FRAME_WORDS = 20, FIBER_RETURN_WORD = 11;
asm(R"(
  .text
  .globl softgpu_switch
  .type softgpu_switch, %function
softgpu_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
  .size softgpu_switch, .-softgpu_switch
)");
#endif

static Fiber *fiber_before; /* the one that switched to the running one */

/* Completes a switch, on the new stack; the first thing that a fiber's entry does. */
static inline void fiber_arrive([[maybe_unused]] Fiber &self) {
#ifdef SOFTGPU_ASAN
  __sanitizer_finish_switch_fiber(self.fake_stack, &fiber_before->bottom, &fiber_before->size);
#endif
}

static inline void fiber_start(Fiber &fiber, char *bottom, size_t size, void (*entry)(void)) {
  fiber.bottom = bottom, fiber.size = size, fiber.started = true, fiber.fake_stack = nullptr;
#ifdef SOFTGPU_UCONTEXT
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = bottom, fiber.context.uc_stack.ss_size = size, fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, entry, 0);
#else
  uintptr_t *frame = reinterpret_cast<uintptr_t *>(bottom + size) - FIBER_FRAME_WORDS;
  for (uint32_t i = 0; i < FIBER_FRAME_WORDS; ++i) frame[i] = 0;
  frame[FIBER_RETURN_WORD] = reinterpret_cast<uintptr_t>(entry);
  fiber.stack_pointer = frame;
#endif
}

static inline void fiber_switch(Fiber &from, Fiber &to) {
  fiber_before = &from;
#ifdef SOFTGPU_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.size);
#endif
#ifdef SOFTGPU_UCONTEXT
  swapcontext(&from.context, &to.context);
#else
  softgpu_switch(&from.stack_pointer, to.stack_pointer);
#endif
  fiber_arrive(from);
}

#endif
