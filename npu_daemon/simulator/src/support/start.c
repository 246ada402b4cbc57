// Where a program of ours begins: what a compiler's crt1.o does, for the C library of this host.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef void (*Initialiser)(int, char **, char **);

int main(int, char **, char **);
int __libc_start_main(int (*)(int, char **, char **), int, char **, Initialiser, void (*)(void), void (*)(void), void *);

__attribute__((visibility("hidden"))) extern Initialiser __init_array_start[];
__attribute__((visibility("hidden"))) extern Initialiser __init_array_end[];
__attribute__((visibility("hidden"))) void *__dso_handle = 0;

static void initialise(int count, char **arguments, char **environment) {
    for (Initialiser *each = __init_array_start; each != __init_array_end; ++each) (*each)(count, arguments, environment);
}

// `stack` holds the number of arguments, then the arguments; `at_exit` is what the loader wants to be called.
__attribute__((used, visibility("hidden"))) void asim_start(long *stack, void (*at_exit)(void)) {
    __libc_start_main(main, (int)stack[0], (char **)(stack + 1), initialise, 0, at_exit, stack);
    __builtin_trap();
}

#if defined(__x86_64__)
__asm__(
    ".globl _start\n"
    ".type _start, @function\n"
    "_start:\n"
    "    xorl %ebp, %ebp\n"
    "    movq %rsp, %rdi\n"
    "    movq %rdx, %rsi\n"
    "    andq $-16, %rsp\n"
    "    call asim_start\n");
#elif defined(__aarch64__)
__asm__(
    ".globl _start\n"
    ".type _start, %function\n"
    "_start:\n"
    "    mov x29, #0\n"
    "    mov x30, #0\n"
    "    mov x1, x0\n"
    "    mov x0, sp\n"
    "    bl asim_start\n");
#else
#error "programs start on x86-64 and aarch64 only"
#endif

// Part of libc.so.6 since glibc 2.33; earlier ones have it in an archive that only compilers bring.
__attribute__((visibility("hidden"))) int fstat(int descriptor, struct stat *status) {
    return (int)syscall(SYS_fstat, descriptor, status);
}
