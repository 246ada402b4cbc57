// Tensors and arrays of the operator interface, as the vendor documents them, for the stand-in.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {
struct aclTensor;
struct aclTensorList;
struct aclIntArray;
struct aclFloatArray;
struct aclBoolArray;
struct aclOpExecutor;
enum aclDataType : int { ACL_DT_UNDEFINED = -1 };
enum aclFormat { ACL_FORMAT_ND = 2 };
aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t *stride,
                           int64_t offset, aclFormat format, const int64_t *storageDims, uint64_t storageDimsNum,
                           void *tensorData);
aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size);
aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size);
aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size);
aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size);
}
