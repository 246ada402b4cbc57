// Declaration of tiling structures: the data that a tiling function hands to its kernel.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "asim/host/registry.h"
#include "asim/host/tiling_fields.h"
#include "graph/types.h"

namespace optiling {
// Operators rely on these being visible here.
using std::map;
using std::string;
using std::vector;
}  // namespace optiling

#define BEGIN_TILING_DATA_DEF(class_name)           \
    class class_name : public ::optiling::TilingDef { \
     public:                                        \
        class_name() : ::optiling::TilingDef(#class_name) {}

#define TILING_DATA_FIELD_DEF(data_type, field_name)                                                          \
 public:                                                                                                      \
    void set_##field_name(data_type value) { this->template write<data_type>(field_name##_field_.offset, value); } \
    data_type get_##field_name() const { return this->template read<data_type>(field_name##_field_.offset); } \
                                                                                                              \
 private:                                                                                                     \
    ::optiling::TilingField<data_type> field_name##_field_{*this, #field_name};

#define TILING_DATA_FIELD_DEF_ARR(arr_type, arr_size, field_name)                                  \
 public:                                                                                           \
    void set_##field_name(const arr_type *values) {                                                \
        ::std::memcpy(this->get_##field_name(), values, sizeof(arr_type) * (arr_size));            \
    }                                                                                              \
    arr_type *get_##field_name() const { return this->template elements<arr_type>(field_name##_field_.offset); } \
                                                                                                   \
 private:                                                                                          \
    ::optiling::TilingField<arr_type> field_name##_field_{*this, #field_name, (arr_size)};

#define TILING_DATA_FIELD_DEF_STRUCT(struct_type, field_name) \
 public:                                                      \
    struct_type field_name;                                   \
                                                              \
 private:                                                     \
    ::optiling::NestedTilingField field_name##_field_{*this, #field_name, field_name};

// Some operators write the closing semicolon, some do not.
#define END_TILING_DATA_DEF \
    }                       \
    ;

// `op_type` is the operator, the operator and a tiling key (Add_1), or a nested structure (MatmulOp).
#define REGISTER_TILING_DATA_CLASS(op_type, class_name)                                  \
    [[maybe_unused]] static const bool g_tilingdata_##op_type##class_name##_registered = \
        ::asim::host::register_tiling_data(#op_type, &::asim::host::make_tiling_data<class_name>);
