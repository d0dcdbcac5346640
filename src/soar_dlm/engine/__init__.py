"""The one loop: requests become rows, rows become one forward, its readings move every request's search one step on."""
