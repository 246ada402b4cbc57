// Collects the records of the running block and writes them to the trace file.
#pragma once
#include <cstdint>
#include <initializer_list>

#include "asim/trace/record.h"

namespace asim {

void open_trace(int fd, uint32_t block_count, const Composition &composition, uint64_t record_limit);
void close_trace();

// Asks for a line `located` on standard output, with the kernel's frames, when a block emits its record `ordinal`.
void locate_record(uint32_t block_index, uint64_t ordinal);

// The records that follow are those of another block.
void switch_trace(uint32_t block_index);

// Appends a record; fills in the scalar work done since the previous one.
void emit(Record record, std::initializer_list<Operand> operands);

// Where the last operand of the running block lies. It stays there as long as the block remembers scalar lines.
uint64_t last_operand_place();

// Adds parts to the cache line that the operand at `place` stands for.
void add_line_parts(uint64_t place, uint32_t parts);

}  // namespace asim
