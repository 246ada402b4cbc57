// gert::StorageFormat: the layout a tensor was given (origin) and the one it has in memory (storage).
#pragma once

#include "graph/types.h"

namespace gert {

class StorageFormat {
 public:
    StorageFormat() = default;
    StorageFormat(ge::Format origin, ge::Format storage) : origin_(origin), storage_(storage) {}

    ge::Format GetOriginFormat() const { return origin_; }
    ge::Format GetStorageFormat() const { return storage_; }

 private:
    ge::Format origin_ = ge::FORMAT_ND;
    ge::Format storage_ = ge::FORMAT_ND;
};

}  // namespace gert
