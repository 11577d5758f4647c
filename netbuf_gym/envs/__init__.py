"""The Gymnasium environments of all tasks: scalar, vectorized and multi-agent, on one engine."""
