"""Vector instructions that Numba does not emit by itself, as small inline functions.

Everything but :func:`block_hits` is plain LLVM vector code and runs on any processor;
:func:`block_hits` needs the byte shuffle of AVX2 (:data:`HAS_BYTE_SHUFFLE` says if it is there).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from colmem_kernels._jit import kernel

HAS_BYTE_SHUFFLE = bool(llvm.get_host_cpu_features().get("avx2", False))

ROWS_PER_BLOCK = 32
PAIRS_PER_STEP = 4  # byte pairs of lookups added before they are widened: 8 * LOOKUP_MAX <= 255
LOOKUP_MAX = 31

_intrinsic: Callable[[Callable[..., Any]], Any] = intrinsic
_cgutils: Any = cgutils

_I1, _I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
_BYTES16 = ir.VectorType(_I8, 16)
_BYTES32 = ir.VectorType(_I8, 32)
_WORDS16 = ir.VectorType(_I16, 16)
_INTS16 = ir.VectorType(_I32, 16)
_FLOATS16 = ir.VectorType(ir.FloatType(), 16)


def _splat(vector: ir.VectorType, value: int) -> ir.Constant:
    return ir.Constant(vector, [ir.Constant(vector.element, value)] * vector.count)


def _data(context: Any, builder: Any, array_type: Any, value: Any) -> Any:
    """Address of an array's first byte, as i8*."""
    data = context.make_array(array_type)(context, builder, value).data
    return builder.bitcast(data, _I8.as_pointer())


def _load(builder: Any, address: Any, offset: Any, vector: ir.VectorType) -> Any:
    place = builder.gep(address, [offset])
    return builder.load(builder.bitcast(place, vector.as_pointer()), align=1)


def _store(builder: Any, value: Any, address: Any, offset: int) -> None:
    place = builder.gep(address, [ir.Constant(_I64, offset)])
    builder.store(value, builder.bitcast(place, value.type.as_pointer()), align=1)


@_intrinsic
def prefetch(typingctx: Any, array: Any, at: Any) -> Any:
    """Ask for the cache line of element ``at`` of a C-order array, counted over all axes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type = signature.args[0]
        data = context.make_array(array_type)(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), _I8.as_pointer())
        function_type = ir.FunctionType(ir.VoidType(), [_I8.as_pointer(), _I32, _I32, _I32])
        function = _cgutils.get_or_insert_function(
            builder.module, function_type, "llvm.prefetch.p0i8"
        )
        builder.call(function, [place, _I32(0), _I32(3), _I32(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@_intrinsic
def trailing_zeros(typingctx: Any, bits: Any) -> Any:
    """Position of the lowest set bit of a non-zero uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(_I1, 1))

    return types.uint64(types.uint64), codegen


@_intrinsic
def mask_bits(typingctx: Any, mask: Any, at: Any) -> Any:
    """Bits of the 32 mask bytes from ``at`` on: bit i is set where byte ``at + i`` is not 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _data(context, builder, signature.args[0], args[0])
        held = _load(builder, address, args[1], _BYTES32)
        bits = builder.bitcast(builder.icmp_unsigned("!=", held, _splat(_BYTES32, 0)), _I32)
        return builder.zext(bits, _I64)

    return types.uint64(mask, types.int64), codegen


@_intrinsic
def block_hits(
    typingctx: Any,
    codes: Any,
    at: Any,
    tables: Any,
    n_steps: Any,
    above: Any,
    below: Any,
    sums: Any,
) -> Any:
    """Add up the table lookups of one block of 32 rows and compare the sums.

    codes : uint8, the block from byte ``at`` on, ``n_steps * 4`` groups of 32 bytes;
    tables : uint8, two tables of 16 entries (low, high nibble) per group; sums : uint16 (32,),
    written. Returns uint64: bit r for sums[r] > above, bit 32 + r for sums[r] < below.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code_type, _, table_type, _, _, _, sums_type = signature.args
        codes_at = builder.gep(_data(context, builder, code_type, args[0]), [args[1]])
        tables_at = _data(context, builder, table_type, args[2])
        shuffle = _cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(_BYTES32, [_BYTES32, _BYTES32]),
            "llvm.x86.avx2.pshuf.b",
        )
        both = ir.Constant(ir.VectorType(_I32, 32), [_I32(i % 16) for i in range(32)])

        def lookup(table_offset: Any, nibbles: Any) -> Any:
            table = _load(builder, tables_at, table_offset, _BYTES16)
            wide = builder.shuffle_vector(table, ir.Constant(_BYTES16, ir.Undefined), both)
            return builder.call(shuffle, [wide, nibbles])

        all_slot = _cgutils.alloca_once_value(builder, _splat(_WORDS16, 0))
        odd_slot = _cgutils.alloca_once_value(builder, _splat(_WORDS16, 0))
        with _cgutils.for_range(builder, args[3], intp=_I64) as loop:
            first = builder.mul(loop.index, _I64(32 * PAIRS_PER_STEP))
            total = None
            for pair in range(PAIRS_PER_STEP):
                offset = builder.add(first, _I64(32 * pair))
                held = _load(builder, codes_at, offset, _BYTES32)
                low = builder.and_(held, _splat(_BYTES32, 15))
                high = builder.lshr(held, _splat(_BYTES32, 4))
                for nibbles, shift in ((low, 0), (high, 16)):
                    found = lookup(builder.add(offset, _I64(shift)), nibbles)
                    total = found if total is None else builder.add(total, found)
            words = builder.bitcast(total, _WORDS16)
            odd = builder.lshr(words, _splat(_WORDS16, 8))
            builder.store(builder.add(builder.load(all_slot), words), all_slot)
            builder.store(builder.add(builder.load(odd_slot), odd), odd_slot)
        # The even bytes' sums are what is left once the odd bytes' are taken out (modulo 2**16).
        odd = builder.load(odd_slot)
        even = builder.sub(builder.load(all_slot), builder.shl(odd, _splat(_WORDS16, 8)))
        sums_at = _data(context, builder, sums_type, args[6])
        _store(builder, even, sums_at, 0)
        _store(builder, odd, sums_at, 32)

        def compare(relation: str, limit: Any, shift: int) -> Any:
            one = builder.insert_element(
                ir.Constant(_WORDS16, ir.Undefined), builder.trunc(limit, _I16), _I32(0)
            )
            limits = builder.shuffle_vector(
                one, ir.Constant(_WORDS16, ir.Undefined), _splat(_INTS16, 0)
            )
            bits = None
            for half, place in ((even, shift), (odd, shift + 16)):
                found = builder.bitcast(builder.icmp_signed(relation, half, limits), _I16)
                moved = builder.shl(builder.zext(found, _I64), _I64(place))
                bits = moved if bits is None else builder.or_(bits, moved)
            return bits

        return builder.or_(compare(">", args[4], 0), compare("<", args[5], 32))

    signature = types.uint64(
        codes, types.int64, tables, types.int64, types.int64, types.int64, sums
    )
    return signature, codegen


@_intrinsic
def butterfly(typingctx: Any, tile: Any, a: Any, b: Any) -> Any:
    """Replace rows a and b of a tile, float32 (n, 16), by their sum and their difference."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _data(context, builder, signature.args[0], args[0])
        places = [
            builder.bitcast(builder.gep(data, [builder.mul(at, _I64(64))]), _FLOATS16.as_pointer())
            for at in args[1:]
        ]
        first, second = (builder.load(place, align=4) for place in places)
        builder.store(builder.fadd(first, second), places[0], align=4)
        builder.store(builder.fsub(first, second), places[1], align=4)
        return context.get_dummy_value()

    return types.void(tile, types.int64, types.int64), codegen


@_intrinsic
def nibble_dot(typingctx: Any, codes: Any, at: Any, weights: Any, n_steps: Any) -> Any:
    """Sum of weights over 4-bit values: ``n_steps`` times 128 bytes from byte ``at`` on.

    weights : int16, within +-127, in the order of :func:`colmem_kernels.codes.nibble_order`: per 32
    bytes the weights of their low nibbles, then of their high ones. Returns int64.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code_type, _, weight_type, _ = signature.args
        codes_at = builder.gep(_data(context, builder, code_type, args[0]), [args[1]])
        weights_at = _data(context, builder, weight_type, args[2])
        slot = _cgutils.alloca_once_value(builder, _splat(_INTS16, 0))
        halves = [ir.Constant(_INTS16, [_I32(i + start) for i in range(16)]) for start in (0, 16)]
        with _cgutils.for_range(builder, args[3], intp=_I64) as loop:
            first = builder.mul(loop.index, _I64(128))
            sums: list[Any] = [None] * 4
            for part in range(4):
                offset = builder.add(first, _I64(32 * part))
                held = _load(builder, codes_at, offset, _BYTES32)
                low = builder.and_(held, _splat(_BYTES32, 15))
                high = builder.lshr(held, _splat(_BYTES32, 4))
                for lane, (nibbles, half) in enumerate(
                    (nibbles, half) for nibbles in (low, high) for half in halves
                ):
                    picked = builder.shuffle_vector(
                        nibbles, ir.Constant(_BYTES32, ir.Undefined), half
                    )
                    wide = builder.zext(picked, _WORDS16)
                    # A nibble takes one byte of codes and two weights of two bytes.
                    place = builder.add(builder.mul(offset, _I64(4)), _I64(32 * lane))
                    weight = _load(builder, weights_at, place, _WORDS16)
                    product = builder.mul(wide, weight)
                    sums[lane] = product if sums[lane] is None else builder.add(sums[lane], product)
            # 16 products of at most 15 * 127 fit 16 bits.
            words = builder.add(builder.add(sums[0], sums[1]), builder.add(sums[2], sums[3]))
            builder.store(builder.add(builder.load(slot), builder.sext(words, _INTS16)), slot)
        reduce_sum = _cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_I32, [_INTS16]), "llvm.vector.reduce.add.v16i32"
        )
        return builder.sext(builder.call(reduce_sum, [builder.load(slot)]), _I64)

    return types.int64(codes, types.int64, weights, types.int64), codegen


@kernel(None)
def admitted_bits(mask: npt.NDArray[np.uint8], start: int, n_rows: int) -> Any:
    """Bits of the mask from ``start`` on, at most 32 and none for rows from ``n_rows`` on."""
    if start + ROWS_PER_BLOCK <= n_rows:
        return mask_bits(mask, start)
    bits = np.uint64(0)
    for i in range(n_rows - start):
        if mask[start + i] != 0:
            bits |= np.uint64(1) << np.uint64(i)
    return bits
