// Room that Sin and Cos of floats ask for: three temporary tensors of the source's size.
#ifndef ROOM_OF_SIN_AND_COS
#define ROOM_OF_SIN_AND_COS
#include <cstdint>

namespace AscendC {
inline void room_of_three(const ge::Shape &shape, uint32_t element_bytes, uint32_t &most, uint32_t &least) {
    least = 3 * 256;
    most = static_cast<uint32_t>(3 * shape.GetShapeSize() * element_bytes);
}
inline void GetSinMaxMinTmpSize(const ge::Shape &shape, uint32_t element_bytes, bool, uint32_t &most, uint32_t &least) {
    room_of_three(shape, element_bytes, most, least);
}
inline void GetCosMaxMinTmpSize(const ge::Shape &shape, uint32_t element_bytes, bool, uint32_t &most, uint32_t &least) {
    room_of_three(shape, element_bytes, most, least);
}
}  // namespace AscendC
#endif
