"""Training jobs of a second."""

TINY = (
    "algo.num_envs=4",
    "algo.kwargs.n_steps=8",
    "algo.kwargs.batch_size=16",
    "scenario=ppcc/4",
    "scenario.kwargs.duration_s=2",
    "stagger_steps=0",
    "total_timesteps=128",
    "progress=false",
    "tensorboard=false",
)
