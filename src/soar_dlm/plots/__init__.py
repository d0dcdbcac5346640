"""The paper's figures, drawn from result folders and traces, never from a model (extra ``plots``)."""
