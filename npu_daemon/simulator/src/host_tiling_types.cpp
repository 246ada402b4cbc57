// Names and sizes of element types and layouts: one table each.
#include <algorithm>
#include <iterator>

#include "graph/types.h"
#include "graph/utils/type_utils.h"

namespace ge {
namespace {

struct TypeRow {
    DataType type;
    const char *name;
    uint32_t bytes;  // 0: no whole-byte element
};

constexpr TypeRow kTypes[] = {
    {DT_FLOAT, "DT_FLOAT", 4},
    {DT_FLOAT16, "DT_FLOAT16", 2},
    {DT_INT8, "DT_INT8", 1},
    {DT_INT32, "DT_INT32", 4},
    {DT_UINT8, "DT_UINT8", 1},
    {DT_INT16, "DT_INT16", 2},
    {DT_UINT16, "DT_UINT16", 2},
    {DT_UINT32, "DT_UINT32", 4},
    {DT_INT64, "DT_INT64", 8},
    {DT_UINT64, "DT_UINT64", 8},
    {DT_DOUBLE, "DT_DOUBLE", 8},
    {DT_BOOL, "DT_BOOL", 1},
    {DT_STRING, "DT_STRING", 16},
    {DT_DUAL_SUB_INT8, "DT_DUAL_SUB_INT8", 1},
    {DT_DUAL_SUB_UINT8, "DT_DUAL_SUB_UINT8", 1},
    {DT_COMPLEX64, "DT_COMPLEX64", 8},
    {DT_COMPLEX128, "DT_COMPLEX128", 16},
    {DT_QINT8, "DT_QINT8", 1},
    {DT_QINT16, "DT_QINT16", 2},
    {DT_QINT32, "DT_QINT32", 4},
    {DT_QUINT8, "DT_QUINT8", 1},
    {DT_QUINT16, "DT_QUINT16", 2},
    {DT_RESOURCE, "DT_RESOURCE", 8},
    {DT_STRING_REF, "DT_STRING_REF", 24},
    {DT_DUAL, "DT_DUAL", 5},
    {DT_VARIANT, "DT_VARIANT", 0},
    {DT_BF16, "DT_BF16", 2},
    {DT_UNDEFINED, "DT_UNDEFINED", 0},
    {DT_INT4, "DT_INT4", 0},
    {DT_UINT1, "DT_UINT1", 0},
    {DT_INT2, "DT_INT2", 0},
    {DT_UINT2, "DT_UINT2", 0},
    {DT_COMPLEX32, "DT_COMPLEX32", 4},
    {DT_HIFLOAT8, "DT_HIFLOAT8", 1},
    {DT_FLOAT8_E5M2, "DT_FLOAT8_E5M2", 1},
    {DT_FLOAT8_E4M3FN, "DT_FLOAT8_E4M3FN", 1},
};

struct FormatRow {
    Format format;
    const char *name;
};

constexpr FormatRow kFormats[] = {
    {FORMAT_NCHW, "NCHW"},
    {FORMAT_NHWC, "NHWC"},
    {FORMAT_ND, "ND"},
    {FORMAT_NC1HWC0, "NC1HWC0"},
    {FORMAT_FRACTAL_Z, "FRACTAL_Z"},
    {FORMAT_NC1C0HWPAD, "NC1C0HWPAD"},
    {FORMAT_NHWC1C0, "NHWC1C0"},
    {FORMAT_C1HWNC0, "C1HWNC0"},
    {FORMAT_NC1HWC0_C04, "NC1HWC0_C04"},
    {FORMAT_FRACTAL_Z_C04, "FRACTAL_Z_C04"},
    {FORMAT_CHWN, "CHWN"},
    {FORMAT_HWCN, "HWCN"},
    {FORMAT_MD, "MD"},
    {FORMAT_NDHWC, "NDHWC"},
    {FORMAT_FRACTAL_ZZ, "FRACTAL_ZZ"},
    {FORMAT_FRACTAL_NZ, "FRACTAL_NZ"},
    {FORMAT_NCDHW, "NCDHW"},
    {FORMAT_DHWCN, "DHWCN"},
    {FORMAT_NDC1HWC0, "NDC1HWC0"},
    {FORMAT_FRACTAL_Z_3D, "FRACTAL_Z_3D"},
    {FORMAT_CN, "CN"},
    {FORMAT_NC, "NC"},
    {FORMAT_DHWNC, "DHWNC"},
    {FORMAT_FRACTAL_Z_3D_TRANSPOSE, "FRACTAL_Z_3D_TRANSPOSE"},
    {FORMAT_FRACTAL_ZN_LSTM, "FRACTAL_ZN_LSTM"},
    {FORMAT_FRACTAL_Z_G, "FRACTAL_Z_G"},
    {FORMAT_RESERVED, "RESERVED"},
    {FORMAT_ALL, "ALL"},
    {FORMAT_NULL, "NULL"},
    {FORMAT_ND_RNN_BIAS, "ND_RNN_BIAS"},
    {FORMAT_FRACTAL_ZN_RNN, "FRACTAL_ZN_RNN"},
    {FORMAT_NCL, "NCL"},
};

template <class Row, size_t N, class Predicate>
const Row *find_row(const Row (&rows)[N], Predicate matches) {
    const Row *row = std::find_if(std::begin(rows), std::end(rows), matches);
    return row == std::end(rows) ? nullptr : row;
}

const TypeRow *row_of(DataType type) {
    return find_row(kTypes, [type](const TypeRow &row) { return row.type == type; });
}

}  // namespace

uint32_t asim_element_bytes(DataType type) {
    const TypeRow *row = row_of(type);
    return row == nullptr ? 0 : row->bytes;
}

bool TypeUtils::GetDataTypeLength(DataType type, uint32_t &bytes) {
    const uint32_t known = asim_element_bytes(type);
    if (known == 0) return false;
    bytes = known;
    return true;
}

std::string TypeUtils::DataTypeToSerialString(DataType type) {
    const TypeRow *row = row_of(type);
    return row == nullptr ? "UNDEFINED" : row->name;
}

AscendString TypeUtils::DataTypeToAscendString(const DataType &type) { return DataTypeToSerialString(type).c_str(); }

DataType TypeUtils::SerialStringToDataType(const std::string &name) {
    const TypeRow *row = find_row(kTypes, [&name](const TypeRow &candidate) { return name == candidate.name; });
    return row == nullptr ? DT_UNDEFINED : row->type;
}

std::string TypeUtils::FormatToSerialString(Format format) {
    const auto primary = static_cast<Format>(GetPrimaryFormat(format));
    const FormatRow *row = find_row(kFormats, [primary](const FormatRow &other) { return other.format == primary; });
    return row == nullptr ? "RESERVED" : row->name;
}

AscendString TypeUtils::FormatToAscendString(const Format &format) { return FormatToSerialString(format).c_str(); }

Format TypeUtils::SerialStringToFormat(const std::string &name) {
    const FormatRow *row = find_row(kFormats, [&name](const FormatRow &candidate) { return name == candidate.name; });
    return row == nullptr ? FORMAT_RESERVED : row->format;
}

}  // namespace ge
