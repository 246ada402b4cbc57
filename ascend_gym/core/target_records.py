"""Facts about the target chip that kernel authors need."""

from __future__ import annotations

from pydantic import Field

from ascend_gym.core.request_records import Record


class LaunchCost(Record):
    """Cost of a launch that computes nothing.

    Attributes:
        blocks: number of blocks, at most one per core.
        vector_us: latency of an empty kernel on this many vector cores, in microseconds.
        cube_us: the same for cube cores; ``None`` if the chip has fewer.
        mixed_us: the same for cube cores with two vector cores each; ``None`` if the chip has fewer.
    """

    blocks: int = Field(ge=1)
    vector_us: float = Field(gt=0)
    cube_us: float | None = None
    mixed_us: float | None = None


class VectorRate(Record):
    """Throughput of a class of vector instructions, after the start cost.

    Attributes:
        group: name of the class.
        instructions: names of the calls in the class.
        elems_16bit: 16-bit elements per cycle.
        elems_32bit: 32-bit elements per cycle.
    """

    group: str
    instructions: tuple[str, ...]
    elems_16bit: float = Field(gt=0)
    elems_32bit: float = Field(gt=0)


class CopyCost(Record):
    """Cost of copies between global memory and a core.

    Attributes:
        hbm_gb_per_s: rate of HBM for all cores together.
        hbm_reached_share: that rate as a share of the peak of HBM.
        l2_gb_per_s: rate of L2 for all cores together.
        core_hbm_bytes_per_cycle: maximum read rate of one vector core from HBM.
        core_l2_bytes_per_cycle: maximum read rate of one vector core from L2.
        core_write_bytes_per_cycle: maximum write rate of one vector core.
        write_yield: share of their rate that writes lose beside reads that take all of HBM.
        write_buffer_bytes: what a core writes at once without such a loss.
        start_cycles: start cost of each copy on a pipe, on top of its bytes.
        burst_cycles: cost of each burst (row) of a copy.
        odd_row_cycles: further cost of each of several rows that are not a multiple of 32 bytes.
        off_grid_factor: by how much the bytes take longer where rows do not begin at multiples of 128 bytes.
        read_latency_cycles: from when a read from HBM has taken its pipe to its data.
        l2_latency_cycles: the same for a read from L2.
        write_latency_cycles: the same for a write.
        line_bytes: transfer unit of HBM and L2: aligned rows and tiles are fetched without a
            remainder.
    """

    hbm_gb_per_s: float = Field(gt=0)
    hbm_reached_share: float = Field(default=1.0, gt=0, le=1)
    l2_gb_per_s: float = Field(gt=0)
    core_hbm_bytes_per_cycle: float = Field(gt=0)
    core_l2_bytes_per_cycle: float = Field(gt=0)
    core_write_bytes_per_cycle: float = Field(gt=0)
    write_yield: float = Field(default=0.0, ge=0, le=1)
    write_buffer_bytes: float = Field(default=0.0, ge=0)
    start_cycles: float = Field(ge=0)
    burst_cycles: float = Field(ge=0)
    odd_row_cycles: float = Field(default=0.0, ge=0)
    off_grid_factor: float = Field(default=1.0, ge=1)
    read_latency_cycles: float = Field(ge=0)
    l2_latency_cycles: float = Field(default=0.0, ge=0)
    write_latency_cycles: float = Field(ge=0)
    line_bytes: int = Field(ge=1)


class ScalarCost(Record):
    """Costs of the scalar unit, in cycles.

    Attributes:
        access_cycles: a GetValue of the unified buffer, with the wait for its value.
        next_access_cycles: one that overlaps with the GetValue before it.
        store_cycles: a SetValue of the unified buffer.
        global_access_cycles: a load or store of global memory whose line is in the data cache.
        global_miss_cycles: further cost where the line is not in it.
        global_stream_cycles: the same where the line before is in it.
        data_cache_bytes: size of the data cache; 0 if unknown.
        instruction_cycles: an instruction of the kernel's own code: loop control, address arithmetic.
        float_cycles: one that computes with floats.
        convert_cycles: one that converts between integers and floats.
        float_divide_cycles: a division of floats.
        queue_cycles: AllocTensor, EnQue, DeQue and FreeTensor of one buffer together.
        fetch_cycles: additional cost of the first execution of an instruction on a core.
        fetch_turn_cycles: further cost per core of the launch, because cores fetch the same instruction in
            turn.
        flag_cycles: a SetFlag with its WaitFlag, excluding the wait itself.
        barrier_cycles: a PipeBarrier, excluding the wait itself, except that between vector instructions.
        vector_barrier_cycles: the same for ``PipeBarrier<PIPE_V>``, which the compiler's own does not take.
        sync_all_cycles: a SyncAll, excluding the wait itself.
    """

    access_cycles: float = Field(ge=0)
    next_access_cycles: float = Field(default=0.0, ge=0)
    store_cycles: float = Field(default=0.0, ge=0)
    global_access_cycles: float = Field(default=0.0, ge=0)
    global_miss_cycles: float = Field(ge=0)
    global_stream_cycles: float = Field(ge=0)
    data_cache_bytes: int = Field(default=0, ge=0)
    instruction_cycles: float = Field(ge=0)
    float_cycles: float = Field(default=0.0, ge=0)
    convert_cycles: float = Field(default=0.0, ge=0)
    float_divide_cycles: float = Field(default=0.0, ge=0)
    queue_cycles: float = Field(default=0.0, ge=0)
    fetch_cycles: float = Field(ge=0)
    fetch_turn_cycles: float = Field(ge=0)
    flag_cycles: float = Field(ge=0)
    barrier_cycles: float = Field(ge=0)
    vector_barrier_cycles: float = Field(default=0.0, ge=0)
    sync_all_cycles: float = Field(ge=0)


class CubeCost(Record):
    """Costs of a cube core's computations and copies.

    Attributes:
        start_cycles: start cost of an ``Mmad``, on top of its fractals.
        depth_8bit: k of the product of 16 x k and k x 16 that one cycle computes, for 8-bit elements.
        depth_16bit: the same for half and bfloat16.
        depth_32bit: the same for float.
        l1_l0a_bytes_per_cycle: from L1 to L0A.
        l1_l0b_bytes_per_cycle: from L1 to L0B.
        l0_start_cycles: start cost of a copy from L1 to L0A or L0B, on top of its bytes.
        l0c_gm_bytes_per_cycle: read from L0C by Fixpipe for global memory, counted as float or int32.
        gm_write_bytes_per_cycle: written to global memory by Fixpipe, counted as they are there.
        core_hbm_bytes_per_cycle: maximum read rate of one cube core from HBM.
        core_l2_bytes_per_cycle: maximum read rate of one cube core from L2.
        row_cycles: cost of each row of a copy into L1.
    """

    start_cycles: float = Field(ge=0)
    depth_8bit: float = Field(gt=0)
    depth_16bit: float = Field(gt=0)
    depth_32bit: float = Field(gt=0)
    l1_l0a_bytes_per_cycle: float = Field(gt=0)
    l1_l0b_bytes_per_cycle: float = Field(gt=0)
    l0_start_cycles: float = Field(default=0.0, ge=0)
    l0c_gm_bytes_per_cycle: float = Field(gt=0)
    gm_write_bytes_per_cycle: float | None = Field(default=None, gt=0)
    core_hbm_bytes_per_cycle: float = Field(gt=0)
    core_l2_bytes_per_cycle: float = Field(gt=0)
    row_cycles: float = Field(ge=0)


class TargetSheet(Record):
    """Facts about a chip, as its backend knows them.

    Attributes:
        chip: name of the chip, such as ``910B2``.
        clock_mhz: core cycles per microsecond.
        aiv_cores: number of vector cores.
        aic_cores: number of cube cores.
        ub_bytes: unified buffer of a vector core; kernels can use ``ub_reserved_bytes`` fewer.
        ub_reserved_bytes: part of it that is reserved for the system.
        l1_bytes: L1 of a cube core.
        l0a_bytes: L0A of a cube core.
        l0b_bytes: L0B of a cube core.
        l0c_bytes: L0C of a cube core.
        l2_bytes: L2, shared by all cores.
        event_ids: number of events between each pair of pipes.
        queue_depth: instructions that a pipe's queue holds before the scalar unit has to wait; 0 if unknown.
        launches: costs of empty launches.
        vector_start_cycles: latency of a vector instruction, on top of its elements.
        function_start_cycles: the same for functions, such as Exp, and divisions.
        vector_issue_cycles: the part of it that an independent next instruction waits for.
        vector_rates: throughput of the classes of vector instructions.
        copies: copies between global memory and a vector core.
        scalar: scalar unit.
        cube: cube cores.
        starts_with_empty_l2: whether L2 is empty when a measurement begins; ``None`` if that varies.
        elementwise_call_us: overhead of a framework's element-wise kernel over its traffic bound.
        combining_call_us: the same for kernels that combine elements: reductions, normalisations, scans,
            windows.
    """

    chip: str
    clock_mhz: float = Field(gt=0)
    aiv_cores: int = Field(ge=1)
    aic_cores: int = Field(ge=0)
    ub_bytes: int = Field(ge=1)
    ub_reserved_bytes: int = Field(ge=0)
    l1_bytes: int = Field(ge=0)
    l0a_bytes: int = Field(ge=0)
    l0b_bytes: int = Field(ge=0)
    l0c_bytes: int = Field(ge=0)
    l2_bytes: int = Field(ge=1)
    event_ids: int = Field(ge=1)
    queue_depth: int = Field(default=0, ge=0)
    launches: tuple[LaunchCost, ...]
    vector_start_cycles: float = Field(ge=0)
    function_start_cycles: float = Field(ge=0)
    vector_issue_cycles: float = Field(ge=0)
    vector_rates: tuple[VectorRate, ...]
    copies: CopyCost
    scalar: ScalarCost
    cube: CubeCost
    starts_with_empty_l2: bool | None = None
    elementwise_call_us: float = Field(default=0.0, ge=0)
    combining_call_us: float = Field(default=0.0, ge=0)
