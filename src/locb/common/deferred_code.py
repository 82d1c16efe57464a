"""Pipelines of Numba that compile a function together with all functions that it calls.

Numba's own pipeline optimizes every function together with copies of all functions that it calls, and then generates
its machine code. A function at the end of a chain of five calls is thus optimized and translated five times. With the
pipelines of this module, a function that only compiled functions call is neither optimized nor translated itself: its
code is linked into the function that Python calls, which is optimized once, as a whole. Compilation takes less than
half of the time, and the compiled code is as fast.
"""

from typing import Any

from llvmlite.binding import Linkage  # type: ignore[import-untyped]  # has no type hints
from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import NativeLowering

# Classes and functions of Numba without type hints, or with type hints that do not match their use.
_Library: Any = JITCodeLibrary
_Compiler: Any = CompilerBase
_Pass: Any = LoweringPass
_Builder: Any = DefaultPassBuilder
_register_pass: Any = register_pass
_unliteral: Any = types.unliteral


class _DeferredLibrary(_Library):  # type: ignore[misc]
    """Code of one function, which is only linked into the code of callers."""

    _shared_module: Any

    @property
    def codegen(self) -> Any:
        """Return an object with the only method of the code generator that is called for a compiled function."""
        return _NoEnvironment

    def finalize(self) -> None:
        """Allow callers to link several copies of the code, of which one is kept, and forbid inlining by default.

        Inlining would depend on the callers. The compiled code of the function is thus the same in all entry points.
        """
        self._raise_if_finalized()
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = "linkonce_odr"
                if not any(b"alwaysinline" in attribute for attribute in function.attributes):
                    function.add_function_attribute("noinline")
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Return the code of the function and of all functions that it calls, directly or indirectly."""
        if self._shared_module is None:
            self._shared_module = self._final_module.clone()
            for library in _called(self):
                self._reload_init.update(library._reload_init)
                is_deferred = isinstance(library, _DeferredLibrary)
                module = library._final_module if is_deferred else library._get_module_for_linking()
                self._shared_module.link_in(module, preserve=True)
        return self._shared_module

    def get_pointer_to_function(self, _name: str) -> int:
        """Return 0: there is no machine code."""
        self._ensure_finalized()
        return 0


def _called(library: Any) -> dict[Any, None]:
    """Return the libraries of all functions that a function calls, directly or indirectly, in an ordered set."""
    found: dict[Any, None] = {}
    waiting = [library]
    while waiting:
        for called in waiting.pop()._linking_libraries:
            if called not in found:
                found[called] = None
                if isinstance(called, _DeferredLibrary):
                    waiting.append(called)
    return found


class _NoEnvironment:
    """Replacement of a code generator. Functions that do not use Python objects need no environment."""

    @staticmethod
    def set_env(_name: str, _environment: Any) -> None:
        """Do nothing."""


class _WholeLibrary(_Library):  # type: ignore[misc]
    """Code of a function and of all functions that it calls, without reference counts."""

    def _optimize_final_module(self) -> None:
        """Run one pipeline of optimizations. The usual second one exists to remove reference counts."""
        passes = self._codegen._module_pass_manager()
        if isinstance(passes, tuple):
            passes[0].run(self._final_module, passes[1])
        else:  # before Numba 0.62
            super()._optimize_final_module()


class _CreateLibrary(_Pass):  # type: ignore[misc]
    """Pass that creates the library of a function. The next pass fills it."""

    library: Any

    def __init__(self) -> None:
        """Create the pass, which has no options."""
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Create the library."""
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return True


@_register_pass(mutates_CFG=False, analysis_only=True)
class _CreateDeferred(_CreateLibrary):
    _name = "locb_create_deferred_library"
    library = _DeferredLibrary


@_register_pass(mutates_CFG=False, analysis_only=True)
class _CreateWhole(_CreateLibrary):
    _name = "locb_create_whole_library"
    library = _WholeLibrary


class _LibraryCompiler(_Compiler):  # type: ignore[misc]
    """Numba's pipeline with another pass, which creates the library."""

    creation: Any

    def define_pipelines(self) -> list[Any]:
        """Return the pipeline."""
        manager: Any = _Builder.define_nopython_pipeline(self.state)
        names = [stage[0] for stage in manager.passes]
        manager.passes.insert(names.index(NativeLowering), (self.creation, self.creation._name))
        manager.finalize()
        return [manager]


class DeferredCompiler(_LibraryCompiler):
    """Pipeline of functions that only compiled functions call."""

    creation = _CreateDeferred


class WholeCompiler(_LibraryCompiler):
    """Pipeline of functions that other code calls, and that allocate nothing."""

    creation = _CreateWhole


def ignore_literals(dispatcher: Any) -> Any:
    """Compile a function only once for all constants that callers pass. Optimizations propagate constants later."""
    get_call_template = getattr(dispatcher, "get_call_template", None)
    if get_call_template is not None:
        dispatcher.get_call_template = lambda arguments, names: get_call_template(
            [_unliteral(argument) for argument in arguments], names
        )
    return dispatcher
