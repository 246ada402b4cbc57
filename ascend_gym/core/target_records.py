"""What is known of the chip that candidates are measured for: the facts by which people write kernels."""

from __future__ import annotations

from pydantic import Field

from ascend_gym.core.request_records import Record


class LaunchCost(Record):
    """What a launch costs that computes nothing.

    Attributes:
        blocks: blocks launched, at most one a core.
        vector_us: latency of an empty kernel of so many vector cores, in microseconds.
        cube_us: the same for cube cores; ``None`` where the chip has fewer.
    """

    blocks: int = Field(ge=1)
    vector_us: float = Field(gt=0)
    cube_us: float | None = None


class VectorRate(Record):
    """How fast a class of vector instructions is, once it has started.

    Attributes:
        group: name of the class.
        instructions: what belongs to it, by the names of their calls.
        elems_16bit: elements of 16 bits a cycle.
        elems_32bit: elements of 32 bits a cycle.
    """

    group: str
    instructions: tuple[str, ...]
    elems_16bit: float = Field(gt=0)
    elems_32bit: float = Field(gt=0)


class CopyCost(Record):
    """What copies between global memory and a core cost.

    Attributes:
        hbm_gb_per_s: rate of HBM for all cores together.
        l2_gb_per_s: rate of L2 for all cores together.
        core_hbm_bytes_per_cycle: what one vector core reads from HBM at most.
        core_l2_bytes_per_cycle: what one vector core reads from L2 at most.
        core_write_bytes_per_cycle: what one vector core writes at most.
        start_cycles: from one copy of a pipe to its next, beside the bytes.
        burst_cycles: for each further burst (row) of a copy.
        read_latency_cycles: from the start of a read from HBM to its data, while nothing else is under way.
        write_latency_cycles: the same for a write.
        line_bytes: bytes that HBM and L2 exchange: rows and tiles that begin on such a boundary are fetched
            without a remainder.
    """

    hbm_gb_per_s: float = Field(gt=0)
    l2_gb_per_s: float = Field(gt=0)
    core_hbm_bytes_per_cycle: float = Field(gt=0)
    core_l2_bytes_per_cycle: float = Field(gt=0)
    core_write_bytes_per_cycle: float = Field(gt=0)
    start_cycles: float = Field(ge=0)
    burst_cycles: float = Field(ge=0)
    read_latency_cycles: float = Field(ge=0)
    write_latency_cycles: float = Field(ge=0)
    line_bytes: int = Field(ge=1)


class ScalarCost(Record):
    """What the scalar unit takes, in cycles.

    Attributes:
        access_cycles: a GetValue or SetValue of the unified buffer, or a load or store by pointer.
        global_miss_cycles: a scalar load from global memory that is not in the data cache.
        instruction_cycles: an instruction of the kernel's own code: loop control, address arithmetic.
        fetch_cycles: beside that, where the core has not executed the instruction before.
        fetch_turn_cycles: beside that, for each core of the launch: those that fetch the same take turns.
        flag_cycles: a SetFlag with its WaitFlag, beside the waiting itself.
        barrier_cycles: a PipeBarrier, beside the waiting itself.
        sync_all_cycles: a SyncAll, beside the waiting itself.
    """

    access_cycles: float = Field(ge=0)
    global_miss_cycles: float = Field(ge=0)
    instruction_cycles: float = Field(ge=0)
    fetch_cycles: float = Field(ge=0)
    fetch_turn_cycles: float = Field(ge=0)
    flag_cycles: float = Field(ge=0)
    barrier_cycles: float = Field(ge=0)
    sync_all_cycles: float = Field(ge=0)


class CubeCost(Record):
    """What a cube core computes and moves.

    Attributes:
        start_cycles: of an ``Mmad``, beside its fractals.
        depth_8bit: k of the product of 16 x k and k x 16 that one cycle takes, for elements of 8 bits.
        depth_16bit: the same for half and bfloat16.
        depth_32bit: the same for float.
        l1_l0a_bytes_per_cycle: from L1 to L0A.
        l1_l0b_bytes_per_cycle: from L1 to L0B.
        l0c_gm_bytes_per_cycle: from L0C to global memory (Fixpipe), counted as float or int32.
        core_hbm_bytes_per_cycle: what one cube core reads from HBM at most.
        core_l2_bytes_per_cycle: what one cube core reads from L2 at most.
        row_cycles: for each row of a copy into L1.
    """

    start_cycles: float = Field(ge=0)
    depth_8bit: float = Field(gt=0)
    depth_16bit: float = Field(gt=0)
    depth_32bit: float = Field(gt=0)
    l1_l0a_bytes_per_cycle: float = Field(gt=0)
    l1_l0b_bytes_per_cycle: float = Field(gt=0)
    l0c_gm_bytes_per_cycle: float = Field(gt=0)
    core_hbm_bytes_per_cycle: float = Field(gt=0)
    core_l2_bytes_per_cycle: float = Field(gt=0)
    row_cycles: float = Field(ge=0)


class TargetSheet(Record):
    """Facts about a chip, as whatever measures for it knows them.

    Attributes:
        chip: name of the chip, such as ``910B2``.
        clock_mhz: core cycles per microsecond.
        aiv_cores: vector cores.
        aic_cores: cube cores.
        ub_bytes: unified buffer of a vector core; kernels have ``ub_reserved_bytes`` fewer.
        ub_reserved_bytes: bytes of it that belong to the system.
        l1_bytes: L1 of a cube core.
        l0a_bytes: L0A of a cube core.
        l0b_bytes: L0B of a cube core.
        l0c_bytes: L0C of a cube core.
        l2_bytes: L2, which all cores share.
        event_ids: events between each pair of pipes.
        launches: what empty launches cost.
        vector_start_cycles: what a vector instruction takes to its results beside its elements.
        function_start_cycles: likewise of functions, such as Exp, and divisions.
        vector_issue_cycles: of that, what an instruction behind it waits for that does not need its results.
        vector_rates: how fast the classes of vector instructions are.
        copies: copies between global memory and a vector core.
        scalar: the scalar unit.
        cube: cube cores.
        starts_with_empty_l2: whether nothing is in L2 when a measurement begins; ``None`` where it depends.
        elementwise_call_us: what a framework's element-wise kernel takes beyond the bound of its traffic.
        combining_call_us: likewise, one that combines elements: reductions, normalisations, scans, windows.
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
