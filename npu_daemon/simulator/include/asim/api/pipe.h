// TPipe, TQue, TQueBind and TBuf: how a kernel obtains buffers and passes them between pipes.
#pragma once
#include "asim/api/sync.h"
#include "asim/machine/core.h"
#include "asim/machine/queue.h"
#include "asim/machine/refusal.h"

namespace AscendC {

using TBufHandle = uint8_t *;

// The pipe that fills a buffer at a position, and the one that takes from it.
constexpr asim::Pipe producer_of(TPosition position) {
    switch (position) {
        case TPosition::GM:
        case TPosition::VECIN:
        case TPosition::TSCM:
        case TPosition::A1:
        case TPosition::B1:
        case TPosition::C1: return asim::Pipe::MTE2;
        case TPosition::A2:
        case TPosition::B2:
        case TPosition::C2: return asim::Pipe::MTE1;
        case TPosition::CO1: return asim::Pipe::M;
        case TPosition::CO2:
        case TPosition::C2PIPE2GM: return asim::Pipe::FIX;
        default: return asim::Pipe::V;
    }
}

constexpr asim::Pipe consumer_of(TPosition position) {
    switch (position) {
        case TPosition::GM:
        case TPosition::VECOUT: return asim::Pipe::MTE3;
        case TPosition::TSCM:
        case TPosition::A1:
        case TPosition::B1:
        case TPosition::C1: return asim::Pipe::MTE1;
        case TPosition::A2:
        case TPosition::B2:
        case TPosition::C2: return asim::Pipe::M;
        case TPosition::CO1:
        case TPosition::C2PIPE2GM: return asim::Pipe::FIX;
        case TPosition::CO2: return asim::Pipe::MTE3;
        default: return asim::Pipe::V;
    }
}

// Likewise for the stages that EnQue and DeQue can name: from global memory for vectors, from vectors to global memory,
// or from one copy to the next.
constexpr asim::Pipe stage_producer(TPosition to) { return to == TPosition::GM ? asim::Pipe::V : asim::Pipe::MTE2; }
constexpr asim::Pipe stage_consumer(TPosition from) { return from == TPosition::GM ? asim::Pipe::V : asim::Pipe::MTE3; }

// Options of a queue; they tell the compiler what it may leave out, and change no result.
struct TQueConfig {
    bool nd2nz = false;
    bool nz2nd = false;
    bool scmBlockGroup = false;
    uint32_t bufferLen = 0;
    uint32_t bufferNumber = 0;
    uint32_t consumerSize = 0;
    TPosition consumer[8] = {};
    bool enableStaticEvtId = false;
    bool enableLoopQueue = false;
};

template <TPosition source, TPosition destination, int32_t depth, auto mask = 0>
class TQueBind {
public:
    static constexpr TPosition srcPosition = source;
    static constexpr TPosition dstPosition = destination;

    template <typename T>
    LocalTensor<T> AllocTensor() {
        return view<T>(asim::queue_allocate(number_));
    }
    template <typename T>
    void AllocTensor(LocalTensor<T> &tensor) {
        tensor = AllocTensor<T>();
    }
    template <typename T>
    bool EnQue(const LocalTensor<T> &tensor) {
        asim::queue_enqueue(number_, tensor.bytes(), kProducer, kConsumer);
        return true;
    }
    template <TPosition from, TPosition to, typename T>
    bool EnQue(const LocalTensor<T> &tensor) {
        asim::queue_enqueue(number_, tensor.bytes(), stage_producer(to), stage_consumer(from));
        return true;
    }
    template <typename T>
    LocalTensor<T> DeQue() {
        return view<T>(DeQue());
    }
    TBufHandle DeQue() { return asim::queue_dequeue(number_, kProducer, kConsumer); }
    TBufHandle AllocBuffer() { return asim::queue_allocate(number_); }
    void FreeBuffer(TBufHandle buffer) { asim::queue_release(number_, buffer); }
    bool EnQue(TBufHandle buffer) {
        asim::queue_enqueue(number_, buffer, kProducer, kConsumer);
        return true;
    }
    template <typename T>
    void DeQue(LocalTensor<T> &tensor) {
        tensor = DeQue<T>();
    }
    template <TPosition from, TPosition to, typename T>
    LocalTensor<T> DeQue() {
        return view<T>(asim::queue_dequeue(number_, stage_producer(to), stage_consumer(from)));
    }
    template <typename T>
    void FreeTensor(LocalTensor<T> &tensor) {
        asim::queue_release(number_, tensor.bytes());
    }
    template <typename T>
    void FreeTensor(const LocalTensor<T> &tensor) {
        asim::queue_release(number_, tensor.bytes());
    }
    void FreeAllEvent() { require_depth(); asim::queue_free_all_events(number_); }
    // For pools of a kernel's own: how many buffers there are, and then where each of them lies, from the start of the pool on.
    void InitStartBufHandle(TBufHandle, uint8_t, uint32_t) {}
    template <typename Pool>
    void InitBufHandle(Pool *pool, uint32_t index, TBufHandle, uint32_t address, uint32_t bytes) {
        static_assert(Pool::space == space_of(home), "the buffers of a queue lie in the memory of its pool");
        if (index == 0) init_in(pool->memory_from(address), 1, bytes);
        else asim::queue_add_buffer(number_, pool->memory_from(address), bytes);
    }
    bool HasTensorInQue() const { require_depth(); return GetTensorCountInQue() > 0; }
    bool HasIdleBuffer() const { require_depth(); return asim::queue_has_free(number_); }
    bool VacantInQue() const { require_depth(); return GetTensorCountInQue() < depth; }
    int32_t GetTensorCountInQue() const { require_depth(); return static_cast<int32_t>(asim::queue_count(number_)); }

    void init(uint32_t buffers, uint32_t bytes_each) {
        number_ = asim::queue_init(number_, {kProducer, kConsumer, space_of(home), depth}, buffers, bytes_each);
        bytes_each_ = AlignUp(uint64_t{bytes_each}, uint64_t{asim::kUbBlockBytes});
    }
    // Returns the queue's number.
    uint32_t init_in(const asim::BufferPool &pool, uint32_t buffers, uint32_t bytes_each) {
        number_ = asim::queue_init_in_pool(number_, {kProducer, kConsumer, space_of(home), depth}, buffers, bytes_each, pool);
        bytes_each_ = AlignUp(uint64_t{bytes_each}, uint64_t{asim::kUbBlockBytes});
        return number_;
    }

private:
    static constexpr void require_depth() { static_assert(depth != 0, "a queue of depth 0 has no tensors to ask for: this call needs a depth of 1 or more"); }

    template <typename T>
    LocalTensor<T> view(uint8_t *base) const {
        return LocalTensor<T>(base, bytes_each_, home);
    }

    // Where the buffers lie: those of a queue that global memory fills, at its other end.
    static constexpr TPosition home = source == TPosition::GM ? destination : source;

    static constexpr asim::Pipe kProducer = producer_of(source), kConsumer = consumer_of(destination);

    uint32_t number_ = 0;           // of the queue that the machine keeps
    uint64_t bytes_each_ = 0;
};

template <TPosition position, int32_t depth, auto mask = 0>
class TQue : public TQueBind<position, position, depth, mask> {};

template <TPosition position, int32_t depth = 1, auto mask = 0>
class TSCM : public TQueBind<position, TPosition::A1, depth, mask> {};

template <TPosition position = TPosition::LCM>
class TBuf {
public:
    static constexpr asim::Space space = space_of(position);

    template <typename T>
    LocalTensor<T> Get() const {
        return LocalTensor<T>(base_, bytes_, position);
    }
    template <typename T>
    LocalTensor<T> Get(uint32_t size_elems) const {
        return LocalTensor<T>(base_, static_cast<uint64_t>(size_elems) * sizeof(T), position);
    }
    template <typename T>
    LocalTensor<T> GetWithOffset(uint32_t size_elems, uint32_t offset_bytes) const {
        return LocalTensor<T>(base_ + offset_bytes, static_cast<uint64_t>(size_elems) * sizeof(T), position);
    }
    template <typename T>
    LocalTensor<T> AllocTensor() const {
        return Get<T>();
    }
    template <typename T>
    void FreeTensor(const LocalTensor<T> &) const {}
    // For pools of a kernel's own.
    void InitStartBufHandle(TBufHandle, uint8_t, uint32_t) {}
    template <typename Pool>
    void InitBufHandle(Pool *pool, uint32_t, TBufHandle, uint32_t address, uint32_t bytes) {
        static_assert(Pool::space == space, "a TBuf lies in the memory of its pool");
        bind(asim::pool_next(pool->memory_from(address), 1, bytes), bytes);
    }

    void bind(uint8_t *base, uint64_t bytes) {
        base_ = base;
        bytes_ = bytes;
    }

private:
    uint8_t *base_ = nullptr;
    uint64_t bytes_ = 0;
};

constexpr uint32_t defaultBufIDSize = 4;

// Memory divided into buffers for one stage of a kernel. Another pool may lie in the same place: Reset waits for the buffers that were
// freed, and afterwards the pool has no memory.
template <TPosition position, uint32_t bufIDSize = defaultBufIDSize>
class TBufPool {
public:
    static constexpr TPosition poolPos = position;
    static constexpr bool isTbufPool = true;
    static constexpr asim::Space space = space_of(position);
    static_assert(space == asim::Space::Ub || space == asim::Space::L1, "a TBufPool lies in the unified buffer or in L1");
    static_assert(bufIDSize <= 16, "a TBufPool holds at most 16 buffers");

    TBufPool() = default;
    TBufPool(const TBufPool &) = delete;
    ~TBufPool() { Reset(); }

    template <TPosition source, TPosition destination, int32_t depth, auto mask>
    bool InitBuffer(TQueBind<source, destination, depth, mask> &queue, uint8_t buffers, uint32_t bytes_each) {
        const uint32_t number = queue.init_in(pool_, buffers, bytes_each);
        queues_[queue_count_++] = number;
        take(buffers, bytes_each);
        return true;
    }
    template <TPosition at>
    bool InitBuffer(TBuf<at> &buffer, uint32_t bytes) {
        static_assert(TBuf<at>::space == space, "a TBuf lies in the memory of its pool");
        buffer.bind(asim::pool_next(pool_, 1, bytes), bytes);
        take(1, bytes);
        return true;
    }
    template <typename Pool>
    bool InitBufPool(Pool &pool, uint32_t bytes) {
        static_assert(Pool::space == space, "a pool lies in the memory of the one that it is taken from");
        pool.bind(asim::pool_next(pool_, 0, bytes), bytes);
        pool_.used_bytes += round_up(bytes);
        return true;
    }
    template <typename Pool, typename Other>
    bool InitBufPool(Pool &pool, uint32_t bytes, Other &shared) {
        pool.share(shared, bytes);
        return true;
    }
    void Reset() {
        for (uint32_t i = 0; i < queue_count_; ++i) asim::queue_free_all_events(queues_[i]);
        queue_count_ = 0;
        pool_ = {};
    }

    void bind(uint8_t *base, uint32_t bytes) { pool_ = {base, space, round_up(bytes), 0, 0, bufIDSize}; }
    // In the place of another pool, as long as that one is.
    template <typename Other>
    void share(const Other &other, uint32_t bytes) {
        static_assert(Other::space == space, "pools that share memory lie in the same one");
        asim::BufferPool whole = other.memory();
        whole.used_bytes = 0;
        bind(asim::pool_next(whole, 0, bytes), whole.bytes);
    }
    const asim::BufferPool &memory() const { return pool_; }

private:
    static constexpr uint32_t round_up(uint32_t bytes) { return AlignUp(bytes, asim::kUbBlockBytes); }
    void take(uint32_t buffers, uint32_t bytes_each) {
        pool_.buffers += buffers;
        pool_.used_bytes += buffers * round_up(bytes_each);
    }

    asim::BufferPool pool_;
    uint32_t queues_[bufIDSize] = {};       // their numbers; each has a buffer at least
    uint32_t queue_count_ = 0;
};

struct DataCopyParams;

class TPipe {
public:
    TPipe() { Init(); }
    TPipe(const TPipe &) = delete;
    ~TPipe() {
        if (!destroyed_) Destroy();
    }

    void Init() {
        asim::begin_pipe(this);
        destroyed_ = false;
    }
    void Reset() { asim::reset_pipe(); }
    void Destroy() {
        Reset();
        asim::pipe_barrier(asim::Pipe::ALL);
        destroyed_ = true;
    }
    void DestroyWithoutPipeAll() {
        Reset();
        destroyed_ = true;
    }

    // A stretch of global memory that holds what does not fit into the unified buffer; `bytes` long.
    template <typename T>
    void InitSpmBuffer(const GlobalTensor<T> &workspace, const int32_t bytes) {
        asim::keep_spill(workspace.bytes(), bytes > 0 ? static_cast<uint32_t>(bytes) : 0);
    }
    template <typename T, typename Params = DataCopyParams, typename = std::enable_if_t<!std::is_integral_v<Params>>>
    void WriteSpmBuffer(const LocalTensor<T> &writeBuffer, const Params &copyParams, int32_t writeOffset = 0) {
        DataCopy(spilled<T>(writeOffset, spilled_bytes(copyParams, copyParams.dstGap)), writeBuffer, copyParams);
    }
    template <typename T>
    void WriteSpmBuffer(const LocalTensor<T> &writeBuffer, const int32_t writeSize, int32_t writeOffset = 0) {
        DataCopy(spilled<T>(writeOffset, uint64_t{static_cast<uint32_t>(writeSize)} * sizeof(T)), writeBuffer, static_cast<uint32_t>(writeSize));
    }
    template <typename T, typename Params = DataCopyParams, typename = std::enable_if_t<!std::is_integral_v<Params>>>
    void ReadSpmBuffer(const LocalTensor<T> &readBuffer, const Params &copyParams, int32_t readOffset = 0) {
        DataCopy(readBuffer, spilled<T>(readOffset, spilled_bytes(copyParams, copyParams.srcGap)), copyParams);
    }
    template <typename T>
    void ReadSpmBuffer(const LocalTensor<T> &readBuffer, const int32_t readSize, int32_t readOffset = 0) {
        DataCopy(readBuffer, spilled<T>(readOffset, uint64_t{static_cast<uint32_t>(readSize)} * sizeof(T)), static_cast<uint32_t>(readSize));
    }

    template <TPosition source, TPosition destination, int32_t depth, auto mask>
    bool InitBuffer(TQueBind<source, destination, depth, mask> &queue, uint8_t buffers, uint32_t bytes_each) {
        queue.init(buffers, bytes_each);
        return true;
    }
    template <TPosition position>
    bool InitBuffer(TBuf<position> &buffer, uint32_t bytes) {
        buffer.bind(asim::allocate_buffer(TBuf<position>::space, bytes), bytes);
        return true;
    }

    template <typename Pool>
    bool InitBufPool(Pool &pool, uint32_t bytes) {
        pool.bind(asim::allocate_pool(Pool::space, bytes), bytes);
        return true;
    }
    template <typename Pool, typename Other>
    bool InitBufPool(Pool &pool, uint32_t bytes, Other &shared) {
        pool.share(shared, bytes);
        return true;
    }

    template <HardEvent event>
    TEventID FetchEventID() {
        return static_cast<TEventID>(asim::fetch_event_id(source_pipe(event), target_pipe(event)));
    }
    TEventID FetchEventID(HardEvent event) {
        return static_cast<TEventID>(asim::fetch_event_id(source_pipe(event), target_pipe(event)));
    }
    template <HardEvent event>
    TEventID AllocEventID() {
        return static_cast<TEventID>(asim::alloc_event_id(source_pipe(event), target_pipe(event)));
    }
    template <HardEvent event>
    void ReleaseEventID(TEventID event_id) {
        asim::release_event_id(source_pipe(event), target_pipe(event), static_cast<uint32_t>(event_id));
    }

private:
    template <typename Params>
    static uint64_t spilled_bytes(const Params &params, uint32_t gap_blocks) {
        const uint64_t blocks = params.blockCount == 0 ? 0 : uint64_t{params.blockCount} * params.blockLen + (params.blockCount - 1ull) * gap_blocks;
        return blocks * asim::kUbBlockBytes;
    }
    template <typename T>
    GlobalTensor<T> spilled(int32_t offset, uint64_t bytes) const {
        GlobalTensor<T> part;
        part.SetGlobalBuffer(reinterpret_cast<T *>(asim::part_of_spill(offset, bytes)), bytes / sizeof(T));
        return part;
    }

    bool destroyed_ = false;
};

}  // namespace AscendC

// The members of a pool that a kernel divides into buffers itself: it hands queues their memory with InitBufHandle.
#define EXTERN_IMPL_BUFPOOL(EXT_BUFPOOL, POSITION, BUFID_SIZE)                                                                   \
public:                                                                                                                         \
    static constexpr AscendC::TPosition poolPos = POSITION;                                                                      \
    static constexpr bool isTbufPool = true;                                                                                     \
    static constexpr asim::Space space = AscendC::space_of(POSITION);                                                            \
    __aicore__ inline ~EXT_BUFPOOL() { Reset(); }                                                                                \
    __aicore__ inline void Init() { own_current_ = 0, own_count_ = 0, own_memory_ = {}; }                                        \
    __aicore__ inline void Reset() { Init(); }                                                                                   \
    __aicore__ inline AscendC::TBufHandle GetBufHandle(uint8_t offset) {                                                         \
        if (offset >= BUFID_SIZE) asim::refuse(asim::Refusal::PoolHandle, offset, BUFID_SIZE);                                   \
        return own_handles_ + offset;                                                                                            \
    }                                                                                                                           \
    __aicore__ inline void SetCurAddr(uint32_t address) { own_current_ = address; }                                              \
    __aicore__ inline uint32_t GetCurAddr() { return own_current_; }                                                             \
    __aicore__ inline void SetCurBufSize(uint8_t count) { own_count_ = count; }                                                  \
    __aicore__ inline uint8_t GetCurBufSize() { return own_count_; }                                                             \
    void bind(uint8_t *base, uint32_t bytes) {                                                                                   \
        own_memory_ = {base, space, AscendC::AlignUp(bytes, asim::kUbBlockBytes), 0, 0, BUFID_SIZE};                             \
        own_current_ = 0, own_count_ = 0;                                                                                        \
    }                                                                                                                           \
    template <typename Other>                                                                                                    \
    void share(const Other &other, uint32_t bytes) {                                                                             \
        static_assert(Other::space == space, "pools that share memory lie in the same one");                                     \
        asim::BufferPool whole = other.memory();                                                                                 \
        whole.used_bytes = 0;                                                                                                    \
        bind(asim::pool_next(whole, 0, bytes), whole.bytes);                                                                     \
    }                                                                                                                           \
    const asim::BufferPool &memory() const { return own_memory_; }                                                               \
    asim::BufferPool memory_from(uint32_t address) const {                                                                       \
        asim::BufferPool rest = own_memory_;                                                                                     \
        rest.used_bytes = address < rest.bytes ? address : rest.bytes;                                                           \
        return rest;                                                                                                             \
    }                                                                                                                           \
                                                                                                                                 \
private:                                                                                                                        \
    asim::BufferPool own_memory_;                                                                                                \
    uint32_t own_current_ = 0;                                                                                                   \
    uint8_t own_count_ = 0;                                                                                                      \
    uint8_t own_handles_[BUFID_SIZE] = {}

__aicore__ inline AscendC::TPipe *GetTPipePtr() { return static_cast<AscendC::TPipe *>(asim::current_pipe()); }
