"""``python -m soar_dlm`` is the command ``soar``."""

from __future__ import annotations

from soar_dlm.cli.main import main

if __name__ == "__main__":
    main()
