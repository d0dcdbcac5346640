"""May model-written code run here, and if not, why?"""

from __future__ import annotations

import sys

from soar_dlm.errors import SettingsError
from soar_dlm.tasks.sandbox.launch import allow_unsafe, current
from soar_dlm.tasks.sandbox.selftest import faults


def require_consent(what: str, *, allowed: bool, unsafe: bool = False) -> None:
    """Raise unless the user allowed ``what`` to run model-written code, and the sandbox holds on this machine.

    ``unsafe`` (``--unsafe-sandbox``) lets code run where it cannot be isolated.
    """
    if not allowed:
        raise SettingsError(
            f"{what} is judged by running what the model writes. "
            "To allow that on this machine, add --allow-code-execution."
        )
    reason = refusal(unsafe)
    if reason is not None:
        raise SettingsError(reason)


def refusal(unsafe: bool = False) -> str | None:
    """Why model-written code cannot run here; None if it can. Takes a second or two, once in a process."""
    if sys.platform == "win32":
        return "Windows cannot isolate model-written code. Use Linux, WSL or a container."
    if not sys.platform.startswith("linux") and not unsafe:
        return "Model-written code can only be isolated on Linux. To run it anyway, add --unsafe-sandbox."
    if unsafe:
        allow_unsafe()
    try:
        found = faults(current())
    except SettingsError as error:
        return str(error)
    if not found:
        return None
    advice = "" if unsafe else " Install bubblewrap; or, to run the code anyway, add --unsafe-sandbox."
    return f"The sandbox for model-written code does not hold on this machine: {'; '.join(found)}.{advice}"
