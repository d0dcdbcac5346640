"""Registers the model "soar" with lm-evaluation-harness when a program imports ``lm_eval.models``, and only then.

The harness looks for models neither in entry points nor in the environment. So a .pth file imports this module when
Python starts. It imports nothing itself, waits for ``lm_eval.models``, adds one name to its registry and is gone.
"""

import sys

NAME, TARGET = "soar", "soar_dlm.evals.harness:SoarModel"


class AfterModels:
    """An import finder that lets the others find ``lm_eval.models``, and registers the model once that is loaded."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != "lm_eval.models":
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is None:
            return None
        load = spec.loader.exec_module

        def load_and_register(module):  # type: ignore[no-untyped-def]
            load(module)
            from lm_eval.api.registry import model_registry

            if NAME not in model_registry:
                model_registry.register(NAME, target=TARGET)

        spec.loader.exec_module = load_and_register
        return spec


sys.meta_path.insert(0, AfterModels())
