"""Makes the library known to lm-evaluation-harness as the model "soar".

The harness knows no entry points for models. So a .pth file next to this module imports it when Python starts; it then
waits, without importing anything, until ``lm_eval.models`` is imported, and adds one name to its registry.
"""

import sys

NAME, TARGET = "soar", "soar_dlm.evals.harness:SoarModel"


class AfterModels:
    """A finder that lets ``lm_eval.models`` be found as always, and registers the model once it is loaded."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != "lm_eval.models":
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec

        spec = find_spec(name)
        load = spec.loader.exec_module

        def load_and_register(module):  # type: ignore[no-untyped-def]
            load(module)
            from lm_eval.api.registry import model_registry

            if NAME not in model_registry:
                model_registry.register(NAME, target=TARGET)

        spec.loader.exec_module = load_and_register
        return spec


sys.meta_path.insert(0, AfterModels())
