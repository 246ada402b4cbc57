// ge::TypeUtils: names and sizes of element types and layouts.
#pragma once

#include <string>

#include "graph/types.h"

namespace ge {

class TypeUtils {
 public:
    // Bytes of one element in `bytes`; false (and `bytes` untouched) when the type has no whole-byte element.
    static bool GetDataTypeLength(DataType type, uint32_t &bytes);

    static std::string DataTypeToSerialString(DataType type);
    static AscendString DataTypeToAscendString(const DataType &type);
    static DataType SerialStringToDataType(const std::string &name);

    static std::string FormatToSerialString(Format format);
    static AscendString FormatToAscendString(const Format &format);
    static Format SerialStringToFormat(const std::string &name);
};

}  // namespace ge
