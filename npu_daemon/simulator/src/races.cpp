// The race check as one source: optimised as a whole, and its headers are read once.
#include "price/trace_reader.cpp"
#include "races/block_races.cpp"
#include "races/core_races.cpp"
#include "races/data_caches.cpp"
#include "races/find_race.cpp"
#include "races/flag_board.cpp"
#include "races/unwritten.cpp"
#include "races/main.cpp"
