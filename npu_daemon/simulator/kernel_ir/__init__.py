"""Kernels as checked LLVM IR: compiled to bitcode, verified, instrumented, emitted and linked."""
